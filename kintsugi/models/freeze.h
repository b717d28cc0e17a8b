// Selects trainable weights by name patterns.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

// Whether the pattern matches the entire name; * matches any text.
bool matches_all(std::string_view pattern, std::string_view name);
// Whether the pattern matches the entire name or a prefix of it that ends at a dot; * matches any text: "layer0" and
// "layer*.attention" match "layer0.attention.query.weight".
bool matches_beginning(std::string_view pattern, std::string_view name);

// Suggestions "; nearest: layer*.ffn.up, layer*.ffn.down" for a pattern that matches none of these names: at most
// three, with layer numbers as *. Empty if there are no names.
std::string nearest_names(std::string_view pattern, std::span<const std::string> names);

// Freezes the weights matched by [train] freeze and, with adapters, all others except those initialized randomly
// ([train] init_new). Throws UserError for a pattern without matches, or if no trainable weight remains.
void freeze(graph::StateTable& states, const config::Settings& settings);

}  // namespace kintsugi::models

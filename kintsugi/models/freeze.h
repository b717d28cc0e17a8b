// Which weights are trained: patterns of names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

// Whether the pattern is the whole name, where * is any text.
bool matches_all(std::string_view pattern, std::string_view name);
// Whether the pattern is the whole name or a beginning of it that ends at a dot, where * is any text:
// "layer0" and "layer*.attention" match "layer0.attention.query.weight".
bool matches_beginning(std::string_view pattern, std::string_view name);

// "; nearest: layer*.ffn.up, layer*.ffn.down" for a pattern that matches none of these names: at most three, numbers of
// layers as *. Empty if there are no names.
std::string nearest_names(std::string_view pattern, std::span<const std::string> names);

// Freezes the weights that [train] freeze names and, with adapters, all others but those that begin at random
// ([train] init_new). UserError for a pattern that matches none, or if none is left to train.
void freeze(graph::StateTable& states, const config::Settings& settings);

}  // namespace kintsugi::models

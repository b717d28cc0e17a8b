// Low-rank adapters of linear layers (Hu et al. 2021): with the weight W [in ... out ...], the layer also adds
// alpha / rank x A B, A: [in ... lora], B: [lora out ...], where B is 0 at first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

// The names of A and B end so, behind the name of the layer: "layer0.attention.query.lora_a".
inline constexpr std::string_view kLoraA = ".lora_a", kLoraB = ".lora_b";

// Whether a weight of that name is part of an adapter.
bool is_adapter(std::string_view weight);

// Whether the layer, "layer0.attention.query", is one of the targets: a pattern is the whole name or an end of it that
// begins behind a dot, where * is any text: "query", "ffn.*", "layer0.*". Without targets all are.
bool has_adapter(const config::Lora& lora, std::string_view layer);

double lora_scale(const config::Lora& lora);  // alpha / rank

// UserError, with the nearest names, for a target that none of the model's layers matches.
void require_targets(const graph::StateTable& states, const config::Lora& lora);

}  // namespace kintsugi::models

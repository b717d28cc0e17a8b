// Low-rank adapters of linear layers (Hu et al. 2021): a layer with the weight W [in ... out ...] additionally adds
// alpha / rank x A B, A: [in ... lora], B: [lora out ...], where B is initialized to 0. Experts have one adapter each:
// W [expert in out], A [expert in lora], B [expert lora out].
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

// Suffixes of the names of A and B after the layer's name: "layer0.attention.query.lora_a".
inline constexpr std::string_view kLoraA = ".lora_a", kLoraB = ".lora_b";

// Whether a weight of that name is part of an adapter.
bool is_adapter(std::string_view weight);

// Whether the layer, "layer0.attention.query", matches a target: a pattern matches the entire name or a suffix of it
// that begins after a dot, where * matches any text: "query", "ffn.*", "layer0.*". Without targets, all layers match.
bool has_adapter(const config::Lora& lora, std::string_view layer);
// The same for a layer of experts, "layer0.ffn.gate". Without targets, none match.
bool has_expert_adapters(const config::Lora& lora, std::string_view layer);

// The storage of the frozen matrices of the blocks' linear layers, if it is not train.dtype. int8 has codes, and a
// state with the suffix kScale instead of kWeight: W [in ... out ...] is codes times scale [out ...], scale = the
// largest magnitude of a column / 127; experts have scales [expert out] (vector-wise quantization; Dettmers et al.
// 2022, "LLM.int8()", section 3.1).
std::optional<tensor::DType> frozen_dtype(const config::Lora& lora);
inline constexpr std::string_view kWeight = ".weight", kScale = ".scale";
inline constexpr double kMostCode = 127;
// Initial codes are normal numbers of this standard deviation, so that the largest are 4 deviations.
inline constexpr double kCodeDeviation = kMostCode / 4;

double lora_scale(const config::Lora& lora);  // alpha / rank

// Throws UserError, with the nearest names, for a target that matches none of the model's layers.
void require_targets(const graph::StateTable& states, const config::Lora& lora);

}  // namespace kintsugi::models

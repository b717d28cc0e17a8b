// Per-layer settings of config.json: windows, and layers without rotary positions.
#pragma once

#include "kintsugi/base/json_writer.h"
#include "kintsugi/exchange/config_reader.h"
#include "kintsugi/models/family.h"

namespace kintsugi::exchange {

// Layer types.
inline constexpr std::string_view kFullAttention = "full_attention", kSlidingAttention = "sliding_attention";

void read_layers(ConfigReader& config, const models::HuggingFace& family, int64_t layers, ModelText& model);
// Writes members of the current object.
void write_layers(const config::Model& model, const models::HuggingFace& family, base::JsonWriter& out);

}  // namespace kintsugi::exchange

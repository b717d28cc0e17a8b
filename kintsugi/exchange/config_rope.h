// Rotary positions in config.json: rope_parameters of transformers 5, rope_theta and rope_scaling of transformers 4.
#pragma once

#include "kintsugi/base/json_writer.h"
#include "kintsugi/exchange/config_reader.h"
#include "kintsugi/models/family.h"

namespace kintsugi::exchange {

void read_rope(ConfigReader& config, const models::RopeKeys& keys, int64_t head_dim, ModelText& model);
// Writes members of the current object.
void write_rope(const config::Model& model, const models::RopeKeys& keys, base::JsonWriter& out);

}  // namespace kintsugi::exchange

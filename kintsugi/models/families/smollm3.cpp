// SmolLM3 (Hugging Face 2025): Llama without positions in every fourth layer.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family smollm3() {
  config::Model m = llama_defaults();
  m.tied = true;
  m.norm_epsilon = 1e-6;
  m.rope_theta = 2000000.0;
  m.rotary_layers = {"rotary", "rotary", "rotary", "none"};
  std::vector<ConfigRow> config = llama_config({.vocab = "128256",
                                                .embed = "2048",
                                                .ffn = "11008",
                                                .layers = "36",
                                                .heads = "16",
                                                .kv_heads = "4",
                                                .context = "32768",
                                                .tied = "true"});
  config.insert(config.end(),
                {is("attention_bias", "bias_query_key_value", "false"), is("attention_bias", "bias_output", "false"),
                 is("mlp_bias", "bias_ffn", "false"), ignored("no_rope_layer_interval")});
  return {.config = {.name = "smollm3",
                     .about = "SmolLM3: Llama without positions in every fourth layer",
                     .defaults = m,
                     .ffn = {.times = 8, .per = 3, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"smollm3"},
                           .architectures = {{"SmolLM3ForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = llama_weights(),
                           .rope = RopeKeys{.theta = 2000000.0},
                           .windows = WindowKeys{.switched = true, .without_rotary = true},
                           .no_rope_layers = "no_rope_layers"}};
}

}  // namespace kintsugi::models

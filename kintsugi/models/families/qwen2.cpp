// Qwen2 (Yang et al. 2024): Llama with biases for queries, keys and values.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family qwen2() {
  config::Model m = llama_defaults();
  m.bias_query_key_value = true;
  m.norm_epsilon = 1e-6;
  const std::vector<ConfigRow> config = llama_config({.vocab = "151936",
                                                      .embed = "4096",
                                                      .ffn = "22016",
                                                      .layers = "32",
                                                      .heads = "32",
                                                      .kv_heads = "32",
                                                      .context = "32768"});
  return {.config = {.name = "qwen2",
                     .about = "Qwen2: Llama with biases of queries, keys and values",
                     .defaults = m,
                     .ffn = {.times = 8, .per = 3, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"qwen2"},
                           .architectures = {{"Qwen2ForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = llama_weights(),
                           .rope = RopeKeys{},
                           .windows = WindowKeys{.absent = "4096", .switched = true, .after_max_window_layers = true}}};
}

}  // namespace kintsugi::models

// Qwen3 (Yang et al. 2025): Llama with a norm per head of queries and keys.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family qwen3() {
  config::Model m = llama_defaults();
  m.query_key_norm = "head";
  m.norm_epsilon = 1e-6;
  std::vector<ConfigRow> config = llama_config({.vocab = "151936",
                                                .embed = "4096",
                                                .ffn = "22016",
                                                .layers = "32",
                                                .heads = "32",
                                                .kv_heads = "32",
                                                .context = "32768"});
  for (ConfigRow& row : config)
    if (row.ours == "head_dim") row.absent = "128";
  config.insert(config.end(),
                {is("attention_bias", "bias_query_key_value", "false"), is("attention_bias", "bias_output", "false")});
  std::vector<WeightRow> weights = llama_weights();
  weights.push_back({"layers.*.self_attn.q_norm.weight", "head_dim", {"layer*.attention.query_norm.gamma"}});
  weights.push_back({"layers.*.self_attn.k_norm.weight", "head_dim", {"layer*.attention.key_norm.gamma"}});
  return {.config = {.name = "qwen3",
                     .about = "Qwen3: Llama with a norm of each head of queries and keys",
                     .defaults = m,
                     .ffn = {.times = 8, .per = 3, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"qwen3"},
                           .architectures = {{"Qwen3ForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = weights,
                           .rope = RopeKeys{},
                           .windows = WindowKeys{.absent = "4096", .switched = true, .after_max_window_layers = true}}};
}

}  // namespace kintsugi::models

// OLMo 2 (OLMo team 2024) and OLMo 3 (2025): Llama with norms on the outputs of attention and feed-forward layer, and
// over all heads of queries and of keys; OLMo 3 with windows.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {
namespace {

config::Model olmo_defaults() {
  config::Model m = llama_defaults();
  m.norm_place = "output";
  m.query_key_norm = "all";
  return m;
}

std::vector<ConfigRow> config_rows() {
  std::vector<ConfigRow> rows = llama_config({.vocab = "50304",
                                              .embed = "4096",
                                              .ffn = "11008",
                                              .layers = "32",
                                              .heads = "32",
                                              .kv_heads = "null",
                                              .context = "2048",
                                              .epsilon = "1e-05"});
  rows.insert(rows.end(),
              {is("attention_bias", "bias_query_key_value", "false"), is("attention_bias", "bias_output", "false")});
  return rows;
}

std::vector<WeightRow> weight_rows() {
  std::vector<WeightRow> rows = llama_weights();
  for (WeightRow& row : rows) {
    if (row.ours.front() == "layer*.attention_norm.gamma") row.theirs = "layers.*.post_attention_layernorm.weight";
    if (row.ours.front() == "layer*.ffn_norm.gamma") row.theirs = "layers.*.post_feedforward_layernorm.weight";
  }
  rows.push_back(
      {"layers.*.self_attn.q_norm.weight", "kv_heads group head_dim", {"layer*.attention.query_norm.gamma"}});
  rows.push_back({"layers.*.self_attn.k_norm.weight", "kv_heads head_dim", {"layer*.attention.key_norm.gamma"}});
  return rows;
}

}  // namespace

Family olmo2() {
  return {.config = {.name = "olmo2",
                     .about = "OLMo 2: Llama with norms on outputs, and of all queries and keys together",
                     .defaults = olmo_defaults(),
                     .ffn = {.times = 8, .per = 3, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"olmo2"},
                           .architectures = {{"Olmo2ForCausalLM"}},
                           .prefix = "model.",
                           .config = config_rows(),
                           .weights = weight_rows(),
                           .rope = RopeKeys{}}};
}

Family olmo3() {
  config::Model m = olmo_defaults();
  m.window = 4096;
  m.window_layers = {"window", "window", "window", "full"};
  m.rope_theta = m.rope_theta_window = 500000.0;
  return {.config = {.name = "olmo3",
                     .about = "OLMo 3: OLMo 2 with windows in three of four layers",
                     .defaults = m,
                     .ffn = {.times = 8, .per = 3, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"olmo3"},
                           .architectures = {{"Olmo3ForCausalLM"}},
                           .prefix = "model.",
                           .config = config_rows(),
                           .weights = weight_rows(),
                           .rope = RopeKeys{.theta = 500000.0, .window_theta = 500000.0, .scaled_windows = false},
                           .windows = WindowKeys{.absent = "4096", .full_every = 4}}};
}

}  // namespace kintsugi::models

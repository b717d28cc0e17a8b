// Mixtures of experts: Mixtral (Jiang et al. 2024), Qwen3-MoE (Yang et al. 2025) and OLMoE (Muennighoff et al. 2024).
// Llama with a mixture of experts as feed-forward layer. On disk, each expert has its own tensors.
#include <algorithm>

#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {
namespace {

// The names of the router's weight, and of an expert's gate, up and down.
struct ExpertNames {
  std::string_view router, gate, up, down;
};
constexpr ExpertNames kMixtral = {
    "layers.*.block_sparse_moe.gate.weight", "layers.*.block_sparse_moe.experts.*.w1.weight",
    "layers.*.block_sparse_moe.experts.*.w3.weight", "layers.*.block_sparse_moe.experts.*.w2.weight"};
constexpr ExpertNames kOfMlp = {"layers.*.mlp.gate.weight", "layers.*.mlp.experts.*.gate_proj.weight",
                                "layers.*.mlp.experts.*.up_proj.weight", "layers.*.mlp.experts.*.down_proj.weight"};

// Llama's, with experts instead of its feed-forward layer.
std::vector<WeightRow> expert_weights(const ExpertNames& names) {
  std::vector<WeightRow> rows;
  for (const WeightRow& row : llama_weights()) {
    if (row.ours.front() == "layer*.ffn.gate.weight")
      rows.insert(rows.end(), {{names.router, "candidate , embed", {"layer*.ffn.router.weight"}},
                               {names.gate, "ffn , embed", {"layer*.ffn.gate.weight"}, "expert"},
                               {names.up, "ffn , embed", {"layer*.ffn.up.weight"}, "expert"},
                               {names.down, "embed , ffn", {"layer*.ffn.down.weight"}, "expert"}});
    if (!row.ours.front().starts_with("layer*.ffn.")) rows.push_back(row);
  }
  return rows;
}

config::Model expert_defaults(int64_t experts, int64_t per_token) {
  config::Model m = llama_defaults();
  m.experts = experts;
  m.experts_per_token = per_token;
  return m;
}

}  // namespace

Family mixtral() {
  std::vector<ConfigRow> config = llama_config({.vocab = "32000",
                                                .embed = "4096",
                                                .ffn = "14336",
                                                .layers = "32",
                                                .heads = "32",
                                                .kv_heads = "8",
                                                .context = "131072",
                                                .epsilon = "1e-05"});
  config.insert(config.end(),
                {is("num_local_experts", "experts", "8"), is("num_experts_per_tok", "experts_per_token", "2"),
                 ignored("router_aux_loss_coef"), only("router_jitter_noise", "0.0")});
  config::Model m = expert_defaults(8, 2);
  m.rope_theta = 1e6;
  return {.config = {.name = "mixtral",
                     .about = "Mixtral: Llama with experts",
                     .defaults = m,
                     .ffn = {.times = 8, .per = 3, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"mixtral"},
                           .architectures = {{"MixtralForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = expert_weights(kMixtral),
                           .rope = RopeKeys{.theta = 1e6},
                           .windows = WindowKeys{}}};
}

Family qwen3_moe() {
  std::vector<ConfigRow> config = llama_config({.vocab = "151936",
                                                .embed = "2048",
                                                .ffn = "6144",
                                                .layers = "24",
                                                .heads = "32",
                                                .kv_heads = "4",
                                                .context = "32768"});
  for (ConfigRow& row : config)
    if (row.ours == "ffn") row = is("moe_intermediate_size", "ffn", "768");
  config.insert(
      config.end(),
      {is("attention_bias", "bias_query_key_value", "false"), is("attention_bias", "bias_output", "false"),
       is("num_experts", "experts", "128", "num_local_experts"), is("num_experts_per_tok", "experts_per_token", "8"),
       is("norm_topk_prob", "router_normalize", "false"), only("decoder_sparse_step", "1"),
       only("mlp_only_layers", "[]"), ignored("intermediate_size"), ignored("router_aux_loss_coef")});
  config::Model m = expert_defaults(128, 8);
  m.query_key_norm = "head";
  m.norm_epsilon = 1e-6;
  std::vector<WeightRow> weights = expert_weights(kOfMlp);
  weights.push_back({"layers.*.self_attn.q_norm.weight", "head_dim", {"layer*.attention.query_norm.gamma"}});
  weights.push_back({"layers.*.self_attn.k_norm.weight", "head_dim", {"layer*.attention.key_norm.gamma"}});
  return {.config = {.name = "qwen3_moe",
                     .about = "Qwen3-MoE: Qwen3 with experts",
                     .defaults = m,
                     .ffn = {.times = 3, .per = 8, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"qwen3_moe"},
                           .architectures = {{"Qwen3MoeForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = weights,
                           .rope = RopeKeys{},
                           .windows = WindowKeys{.absent = "4096", .switched = true}}};
}

Family olmoe() {
  std::vector<ConfigRow> config = llama_config({.vocab = "50304",
                                                .embed = "2048",
                                                .ffn = "2048",
                                                .layers = "16",
                                                .heads = "16",
                                                .kv_heads = "null",
                                                .context = "4096",
                                                .epsilon = "1e-05"});
  config.insert(
      config.end(),
      {is("attention_bias", "bias_query_key_value", "false"), is("attention_bias", "bias_output", "false"),
       is("num_experts", "experts", "64"), is("num_experts_per_tok", "experts_per_token", "8"),
       is("norm_topk_prob", "router_normalize", "false"), only("clip_qkv", "null"), ignored("router_aux_loss_coef")});
  config::Model m = expert_defaults(64, 8);
  m.query_key_norm = "all";
  m.router_normalize = false;
  std::vector<WeightRow> weights = expert_weights(kOfMlp);
  weights.push_back(
      {"layers.*.self_attn.q_norm.weight", "kv_heads group head_dim", {"layer*.attention.query_norm.gamma"}});
  weights.push_back({"layers.*.self_attn.k_norm.weight", "kv_heads head_dim", {"layer*.attention.key_norm.gamma"}});
  return {.config = {.name = "olmoe",
                     .about = "OLMoE: Llama with experts, and a norm of all queries and keys together",
                     .defaults = m,
                     .ffn = {.times = 1, .per = 1, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"olmoe"},
                           .architectures = {{"OlmoeForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = weights,
                           .rope = RopeKeys{},
                           .derived_head_dim = true}};
}

}  // namespace kintsugi::models

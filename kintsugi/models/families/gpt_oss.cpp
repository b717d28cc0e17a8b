// gpt-oss (OpenAI 2025): experts with biases and a clamped gate, attention with sinks, a window in every other layer.
// The softmax over the chosen experts alone is that over all, normalized. On disk the experts of a layer are one tensor
// each for gate and up, interleaved, and for down.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family gpt_oss() {
  std::vector<ConfigRow> config = llama_config({.vocab = "201088",
                                                .embed = "2880",
                                                .ffn = "2880",
                                                .layers = "36",
                                                .heads = "64",
                                                .kv_heads = "8",
                                                .context = "131072",
                                                .epsilon = "1e-05"});
  for (ConfigRow& row : config)
    if (row.ours == "head_dim") row.absent = "64";
  config.insert(config.end(),
                {is("attention_bias", "bias_query_key_value", "true"), is("attention_bias", "bias_output", "true"),
                 is("num_local_experts", "experts", "128", "num_experts"),
                 is("num_experts_per_tok", "experts_per_token", "4", "experts_per_token"),
                 is("swiglu_limit", "gate_clamp", "7.0"), is("swiglu_alpha", "gate_slope", "1.702"),
                 ignored("router_aux_loss_coef"), ignored("initial_context_length")});
  std::vector<WeightRow> weights;
  for (const WeightRow& row : llama_weights())
    if (!row.ours.front().starts_with("layer*.ffn.")) weights.push_back(row);
  weights.insert(
      weights.end(),
      {{"layers.*.self_attn.sinks", "kv_heads group", {"layer*.attention.sinks"}},
       {"layers.*.mlp.router.weight", "candidate , embed", {"layer*.ffn.router.weight"}},
       {"layers.*.mlp.router.bias", "candidate", {"layer*.ffn.router.linear.bias"}},
       {"layers.*.mlp.experts.gate_up_proj",
        "expert , embed , ffn |",
        {"layer*.ffn.gate.weight", "layer*.ffn.up.weight"}},
       {"layers.*.mlp.experts.gate_up_proj_bias", "expert , ffn |", {"layer*.ffn.gate.bias", "layer*.ffn.up.bias"}},
       {"layers.*.mlp.experts.down_proj", "expert , ffn , embed", {"layer*.ffn.down.weight"}},
       {"layers.*.mlp.experts.down_proj_bias", "expert , embed", {"layer*.ffn.down.bias"}}});
  config::Model m = llama_defaults();
  m.bias_query_key_value = m.bias_output = m.bias_ffn = true;
  m.rope_theta = 150000.0;
  m.window = 128;
  m.window_layers = {"window", "full"};
  m.attention_sinks = true;
  m.experts = 32;
  m.experts_per_token = 4;
  m.router_linear_bias = true;
  m.gate_clamp = 7.0;
  return {.config = {.name = "gpt_oss",
                     .about = "gpt-oss: experts with biases and a clamped gate, attention sinks, alternate windows",
                     .defaults = m,
                     .ffn = {.times = 1, .per = 1, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"gpt_oss"},
                           .architectures = {{"GptOssForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = weights,
                           .rope = RopeKeys{.theta = 150000.0, .required = true},
                           .windows = WindowKeys{.absent = "128", .full_every = 2}}};
}

}  // namespace kintsugi::models

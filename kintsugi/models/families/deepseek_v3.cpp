// DeepSeek-V3 (DeepSeek-AI 2024): latent attention; after some dense layers, experts in groups with sigmoid scores and
// a balancing bias, and shared experts.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {
namespace {

std::vector<ConfigRow> deepseek_config() {
  const auto with_zero = [](ConfigRow row, ConfigRow::Zero zero) {
    row.zero = zero;
    return row;
  };
  return {is("vocab_size", "vocab", "129280"),
          is("hidden_size", "embed", "7168"),
          with_zero(is("intermediate_size", "dense_ffn", "18432"), ConfigRow::Zero::number),  // without dense layers
          is("moe_intermediate_size", "ffn", "2048"),
          is("num_hidden_layers", "layers", "61"),
          is("num_attention_heads", "heads", "128"),
          is("num_key_value_heads", "kv_heads", "128"),
          is("qk_nope_head_dim", "head_dim", "128"),
          is("qk_rope_head_dim", "rotary_head_dim", "64"),
          is("v_head_dim", "value_head_dim", "128"),
          is("kv_lora_rank", "kv_rank", "512"),
          with_zero(is("q_lora_rank", "query_rank", "1536"), ConfigRow::Zero::null),
          is("rope_interleave", "rotary_interleaved", "true"),
          is("max_position_embeddings", "context", "4096"),
          is("rms_norm_eps", "norm_epsilon", "1e-06"),
          activation_is("hidden_act", "\"silu\""),
          is("tie_word_embeddings", "tied", "false"),
          is("attention_bias", "bias_query_key_value", "false"),
          is("attention_bias", "bias_output", "false"),
          is("n_routed_experts", "experts", "256", "num_local_experts"),
          is("num_experts_per_tok", "experts_per_token", "8"),
          with_zero(is("n_shared_experts", "shared_experts", "1"), ConfigRow::Zero::number),
          with_zero(is("first_k_dense_replace", "dense_layers", "3"), ConfigRow::Zero::number),
          is("n_group", "expert_groups", "8"),
          is("topk_group", "groups_per_token", "4"),
          is("norm_topk_prob", "router_normalize", "true"),
          is("routed_scaling_factor", "router_scale", "2.5"),
          only("scoring_func", "\"sigmoid\""),
          only("topk_method", "\"noaux_tc\""),
          only("moe_layer_freq", "1"),
          ignored("attention_dropout"),
          ignored("head_dim"),     // that of the rotary dims, written by transformers
          ignored("qk_head_dim"),  // the sum of both widths
          ignored("aux_loss_alpha"),
          ignored("seq_aux"),
          ignored("ep_size"),
          ignored("num_nextn_predict_layers")};
}

std::vector<WeightRow> deepseek_weights() {
  return {{"embed_tokens.weight", "vocab , embed", {"embedding.table"}},
          {"layers.*.input_layernorm.weight", "embed", {"layer*.attention_norm.gamma"}},
          {"layers.*.self_attn.q_proj.weight",
           "kv_heads group | content turned , embed",
           {"layer*.attention.query_content.weight", "layer*.attention.query_turned.weight"}},
          {"layers.*.self_attn.q_a_proj.weight", "query_latent , embed", {"layer*.attention.query_down.weight"}},
          {"layers.*.self_attn.q_a_proj.bias", "query_latent", {"layer*.attention.query_down.bias"}},
          {"layers.*.self_attn.q_a_layernorm.weight", "query_latent", {"layer*.attention.query_norm.gamma"}},
          {"layers.*.self_attn.q_b_proj.weight",
           "kv_heads group | content turned , query_latent",
           {"layer*.attention.query_latent_content.weight", "layer*.attention.query_latent_turned.weight"}},
          {"layers.*.self_attn.kv_a_proj_with_mqa.weight",
           "| latent turned , embed",
           {"layer*.attention.key_value_down.weight", "layer*.attention.key_turned.weight"}},
          {"layers.*.self_attn.kv_a_proj_with_mqa.bias",
           "| latent turned",
           {"layer*.attention.key_value_down.bias", "layer*.attention.key_turned.bias"}},
          {"layers.*.self_attn.kv_a_layernorm.weight", "latent", {"layer*.attention.key_value_norm.gamma"}},
          {"layers.*.self_attn.kv_b_proj.weight",
           "kv_heads | content value , latent",
           {"layer*.attention.key.weight", "layer*.attention.value.weight"}},
          {"layers.*.self_attn.o_proj.weight", "embed , kv_heads group value", {"layer*.attention.output.weight"}},
          {"layers.*.self_attn.o_proj.bias", "embed", {"layer*.attention.output.bias"}},
          {"layers.*.post_attention_layernorm.weight", "embed", {"layer*.ffn_norm.gamma"}},
          {"layers.*.mlp.gate.weight", "candidate , embed", {"layer*.ffn.router.weight"}},
          {"layers.*.mlp.gate.e_score_correction_bias", "candidate", {"layer*.ffn.router.bias"}},
          // Of layers with experts, which are therefore before those of dense layers.
          {"layers.*.mlp.experts.*.gate_proj.weight", "ffn , embed", {"layer*.ffn.gate.weight"}, "expert"},
          {"layers.*.mlp.experts.*.up_proj.weight", "ffn , embed", {"layer*.ffn.up.weight"}, "expert"},
          {"layers.*.mlp.experts.*.down_proj.weight", "embed , ffn", {"layer*.ffn.down.weight"}, "expert"},
          {"layers.*.mlp.shared_experts.gate_proj.weight", "ffn , embed", {"layer*.ffn.shared.gate.weight"}},
          {"layers.*.mlp.shared_experts.up_proj.weight", "ffn , embed", {"layer*.ffn.shared.up.weight"}},
          {"layers.*.mlp.shared_experts.down_proj.weight", "embed , ffn", {"layer*.ffn.shared.down.weight"}},
          {"layers.*.mlp.gate_proj.weight", "ffn , embed", {"layer*.ffn.gate.weight"}},
          {"layers.*.mlp.up_proj.weight", "ffn , embed", {"layer*.ffn.up.weight"}},
          {"layers.*.mlp.down_proj.weight", "embed , ffn", {"layer*.ffn.down.weight"}},
          {"norm.weight", "embed", {"final_norm.gamma"}},
          {"lm_head.weight", "vocab , embed", {"head.table"}}};
}

}  // namespace

Family deepseek_v3() {
  config::Model m = llama_defaults();
  m.norm_epsilon = 1e-6;
  m.kv_rank = 512;
  m.rotary_head_dim = 64;
  m.rotary_interleaved = true;
  m.experts = 256;
  m.experts_per_token = 8;
  m.shared_experts = 1;
  m.dense_layers = 1;
  m.expert_groups = 8;
  m.groups_per_token = 4;
  m.router_scores = "sigmoid";
  m.router_bias = true;
  m.router_scale = 2.5;
  return {.config = {.name = "deepseek_v3",
                     .about = "DeepSeek-V3: latent attention, experts in groups, shared experts",
                     .defaults = m,
                     .ffn = {.times = 2, .per = 7, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"deepseek_v3"},
                           .architectures = {{"DeepseekV3ForCausalLM"}},
                           .prefix = "model.",
                           .config = deepseek_config(),
                           .weights = deepseek_weights(),
                           .computed = {"layers.61.*"},  // prediction of further tokens, which transformers ignores too
                           .rope = RopeKeys{.scales_scores = true}}};
}

}  // namespace kintsugi::models

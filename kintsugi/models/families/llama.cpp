// Llama 1 to 3 (Touvron et al. 2023a, section 2.2; 2023b; the Llama team 2024), and what later families inherit: RMS
// norm, rotary positions, gated feed-forward layer, grouped heads, no biases.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

config::Model llama_defaults() {
  config::Model m;
  config::set_biases(m, false);
  m.tied = false;
  m.norm = "rms";
  m.gated = true;
  m.activation = "silu";
  m.positions = "rotary";
  return m;
}

std::vector<ConfigRow> llama_config(const LlamaSizes& sizes) {
  return {is("vocab_size", "vocab", sizes.vocab),
          is("hidden_size", "embed", sizes.embed),
          is("intermediate_size", "ffn", sizes.ffn),
          is("num_hidden_layers", "layers", sizes.layers),
          is("num_attention_heads", "heads", sizes.heads),
          is("num_key_value_heads", "kv_heads", sizes.kv_heads),
          is("head_dim", "head_dim", "null"),  // read by all of them, listed or not
          is("max_position_embeddings", "context", sizes.context),
          is("rms_norm_eps", "norm_epsilon", sizes.epsilon),
          activation_is("hidden_act", "\"silu\""),
          is("tie_word_embeddings", "tied", sizes.tied),
          ignored("attention_dropout")};
}

std::vector<WeightRow> llama_weights() {
  return {{"embed_tokens.weight", "vocab , embed", {"embedding.table"}},
          {"layers.*.input_layernorm.weight", "embed", {"layer*.attention_norm.gamma"}},
          {"layers.*.self_attn.q_proj.weight", "kv_heads group head_dim , embed", {"layer*.attention.query.weight"}},
          {"layers.*.self_attn.q_proj.bias", "kv_heads group head_dim", {"layer*.attention.query.bias"}},
          {"layers.*.self_attn.k_proj.weight", "kv_heads head_dim , embed", {"layer*.attention.key.weight"}},
          {"layers.*.self_attn.k_proj.bias", "kv_heads head_dim", {"layer*.attention.key.bias"}},
          {"layers.*.self_attn.v_proj.weight", "kv_heads head_dim , embed", {"layer*.attention.value.weight"}},
          {"layers.*.self_attn.v_proj.bias", "kv_heads head_dim", {"layer*.attention.value.bias"}},
          {"layers.*.self_attn.o_proj.weight", "embed , kv_heads group head_dim", {"layer*.attention.output.weight"}},
          {"layers.*.self_attn.o_proj.bias", "embed", {"layer*.attention.output.bias"}},
          {"layers.*.post_attention_layernorm.weight", "embed", {"layer*.ffn_norm.gamma"}},
          {"layers.*.mlp.gate_proj.weight", "ffn , embed", {"layer*.ffn.gate.weight"}},
          {"layers.*.mlp.gate_proj.bias", "ffn", {"layer*.ffn.gate.bias"}},
          {"layers.*.mlp.up_proj.weight", "ffn , embed", {"layer*.ffn.up.weight"}},
          {"layers.*.mlp.up_proj.bias", "ffn", {"layer*.ffn.up.bias"}},
          {"layers.*.mlp.down_proj.weight", "embed , ffn", {"layer*.ffn.down.weight"}},
          {"layers.*.mlp.down_proj.bias", "embed", {"layer*.ffn.down.bias"}},
          {"norm.weight", "embed", {"final_norm.gamma"}},
          {"lm_head.weight", "vocab , embed", {"head.table"}}};
}

Family llama() {
  std::vector<ConfigRow> config = llama_config({.vocab = "32000",
                                                .embed = "4096",
                                                .ffn = "11008",
                                                .layers = "32",
                                                .heads = "32",
                                                .kv_heads = "null",
                                                .context = "2048"});
  config.insert(config.end(),
                {is("attention_bias", "bias_query_key_value", "false"), is("attention_bias", "bias_output", "false"),
                 is("mlp_bias", "bias_ffn", "false"), ignored("max_sequence_length"), ignored("is_llama_config")});
  return {.config = {.name = "llama",
                     .about = "Llama 1 to 3: rotary positions, RMS norm, gated, grouped heads",
                     .defaults = llama_defaults(),
                     .ffn = {.times = 8, .per = 3, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"llama"},
                           .architectures = {{"LlamaForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = llama_weights(),
                           .computed = {"layers.*.self_attn.rotary_emb.inv_freq"},
                           .rope = RopeKeys{}}};
}

}  // namespace kintsugi::models

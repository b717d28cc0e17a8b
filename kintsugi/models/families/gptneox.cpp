// GPT-NeoX (Black et al. 2022), Pythia (Biderman et al. 2023), FORGE (Yin et al. 2023): rotary positions in part of
// each head, parallel attention and feed-forward layer, each with its norm.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family gptneox() {
  config::Model m;
  m.tied = false;
  m.residual = "parallel";
  m.activation = "gelu";
  m.positions = "rotary";
  return {.config = {.name = "gptneox",
                     .about = "GPT-NeoX, Pythia, FORGE: rotary positions, parallel residual",
                     .defaults = m},
          .build = transformer,
          .hugging_face = {
              .model_types = {"gpt_neox"},
              .architectures = {{"GPTNeoXForCausalLM"}},
              .prefix = "gpt_neox.",
              .config = {is("vocab_size", "vocab", "50432"),
                         is("hidden_size", "embed", "6144"),
                         is("intermediate_size", "ffn", "24576"),
                         is("num_hidden_layers", "layers", "44"),
                         is("num_attention_heads", "heads", "64"),
                         is("max_position_embeddings", "context", "2048"),
                         is("layer_norm_eps", "norm_epsilon", "1e-05"),
                         activation_is("hidden_act", "\"gelu\""),
                         is("tie_word_embeddings", "tied", "false"),
                         {"use_parallel_residual", ConfigRow::Use::is, "residual", "true",
                          "true:parallel false:sequential"},
                         is("attention_bias", "bias_query_key_value", "true"),
                         is("attention_bias", "bias_output", "true"),
                         ignored("attention_dropout"),
                         ignored("hidden_dropout"),
                         ignored("classifier_dropout")},
              .weights = {{"embed_in.weight", "vocab , embed", {"embedding.table"}},
                          {"layers.*.input_layernorm.weight", "embed", {"layer*.attention_norm.gamma"}},
                          {"layers.*.input_layernorm.bias", "embed", {"layer*.attention_norm.beta"}},
                          {"layers.*.post_attention_layernorm.weight", "embed", {"layer*.ffn_norm.gamma"}},
                          {"layers.*.post_attention_layernorm.bias", "embed", {"layer*.ffn_norm.beta"}},
                          {"layers.*.attention.query_key_value.weight",
                           "kv_heads group | head_dim , embed",
                           {"layer*.attention.query.weight", "layer*.attention.key.weight",
                            "layer*.attention.value.weight"}},
                          {"layers.*.attention.query_key_value.bias",
                           "kv_heads group | head_dim",
                           {"layer*.attention.query.bias", "layer*.attention.key.bias", "layer*.attention.value.bias"}},
                          {"layers.*.attention.dense.weight",
                           "embed , kv_heads group head_dim",
                           {"layer*.attention.output.weight"}},
                          {"layers.*.attention.dense.bias", "embed", {"layer*.attention.output.bias"}},
                          {"layers.*.mlp.dense_h_to_4h.weight", "ffn , embed", {"layer*.ffn.up.weight"}},
                          {"layers.*.mlp.dense_h_to_4h.bias", "ffn", {"layer*.ffn.up.bias"}},
                          {"layers.*.mlp.dense_4h_to_h.weight", "embed , ffn", {"layer*.ffn.down.weight"}},
                          {"layers.*.mlp.dense_4h_to_h.bias", "embed", {"layer*.ffn.down.bias"}},
                          {"final_layer_norm.weight", "embed", {"final_norm.gamma"}},
                          {"final_layer_norm.bias", "embed", {"final_norm.beta"}},
                          {"embed_out.weight", "vocab , embed", {"head.table"}}},
              .computed = {"layers.*.attention.bias", "layers.*.attention.masked_bias",
                           "layers.*.attention.rotary_emb.inv_freq"},
              .rope = RopeKeys{.theta_key = "rotary_emb_base", .partial_key = "rotary_pct", .partial = 0.25}}};
}

}  // namespace kintsugi::models

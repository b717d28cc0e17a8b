// GPT-2 (Radford et al. 2019) and GPT-3: learned positions, layer norm, tied embedding and head.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family gpt() {
  return {
      .config = {.name = "gpt", .about = "GPT-2, GPT-3: learned positions, layer norm, tied head"},
      .build = transformer,
      .hugging_face = {
          .model_types = {"gpt2"},
          .architectures = {{"GPT2LMHeadModel"}},
          .prefix = "transformer.",
          .config = {is("vocab_size", "vocab", "50257"),
                     is("n_positions", "context", "1024", "max_position_embeddings"),
                     is("n_embd", "embed", "768", "hidden_size"),
                     is("n_layer", "layers", "12", "num_hidden_layers"),
                     is("n_head", "heads", "12", "num_attention_heads"),
                     is("n_inner", "ffn", "null"),
                     activation_is("activation_function", "\"gelu_new\""),
                     is("layer_norm_epsilon", "norm_epsilon", "1e-05"),
                     is("tie_word_embeddings", "tied", "true"),
                     only("scale_attn_weights", "true"),
                     only("scale_attn_by_inverse_layer_idx", "false"),
                     only("add_cross_attention", "false"),
                     ignored("reorder_and_upcast_attn"),
                     ignored("n_ctx"),
                     ignored("n_special"),
                     ignored("predict_special_tokens"),
                     ignored("summary_type"),
                     ignored("summary_use_proj"),
                     ignored("summary_activation"),
                     ignored("summary_proj_to_labels"),
                     ignored("summary_first_dropout"),
                     ignored("embd_pdrop"),
                     ignored("resid_pdrop"),
                     ignored("attn_pdrop")},
          .weights = {{"wte.weight", "vocab , embed", {"embedding.table"}},
                      {"wpe.weight", "position , embed", {"embedding.positions"}},
                      {"h.*.ln_1.weight", "embed", {"layer*.attention_norm.gamma"}},
                      {"h.*.ln_1.bias", "embed", {"layer*.attention_norm.beta"}},
                      {"h.*.attn.c_attn.weight",
                       "embed , | kv_heads group head_dim",
                       {"layer*.attention.query.weight", "layer*.attention.key.weight",
                        "layer*.attention.value.weight"}},
                      {"h.*.attn.c_attn.bias",
                       "| kv_heads group head_dim",
                       {"layer*.attention.query.bias", "layer*.attention.key.bias", "layer*.attention.value.bias"}},
                      {"h.*.attn.c_proj.weight", "kv_heads group head_dim , embed", {"layer*.attention.output.weight"}},
                      {"h.*.attn.c_proj.bias", "embed", {"layer*.attention.output.bias"}},
                      {"h.*.ln_2.weight", "embed", {"layer*.ffn_norm.gamma"}},
                      {"h.*.ln_2.bias", "embed", {"layer*.ffn_norm.beta"}},
                      {"h.*.mlp.c_fc.weight", "embed , ffn", {"layer*.ffn.up.weight"}},
                      {"h.*.mlp.c_fc.bias", "ffn", {"layer*.ffn.up.bias"}},
                      {"h.*.mlp.c_proj.weight", "ffn , embed", {"layer*.ffn.down.weight"}},
                      {"h.*.mlp.c_proj.bias", "embed", {"layer*.ffn.down.bias"}},
                      {"ln_f.weight", "embed", {"final_norm.gamma"}},
                      {"ln_f.bias", "embed", {"final_norm.beta"}},
                      {"lm_head.weight", "vocab , embed", {"head.table"}}},
          .computed = {"h.*.attn.bias", "h.*.attn.masked_bias"}}};
}

}  // namespace kintsugi::models

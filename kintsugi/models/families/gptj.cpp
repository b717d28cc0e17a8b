// GPT-J (Wang, Komatsuzaki 2021): rotates adjacent dims of a head; attention and feed-forward layer share a norm.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family gptj() {
  config::Model m;
  m.bias_query_key_value = m.bias_output = false;
  m.bias_head = true;
  m.tied = false;
  m.residual = "parallel_one_norm";
  m.positions = "rotary";
  m.rotary_dims = 64;
  m.rotary_interleaved = true;
  return {.config = {.name = "gptj",
                     .about = "GPT-J: rotary positions of neighbouring dims, parallel residual with one norm",
                     .defaults = m},
          .build = transformer,
          .hugging_face = {
              .model_types = {"gptj"},
              .architectures = {{"GPTJForCausalLM"}},
              .prefix = "transformer.",
              .config = {is("vocab_size", "vocab", "50400"),
                         is("n_positions", "context", "2048", "max_position_embeddings"),
                         is("n_embd", "embed", "4096", "hidden_size"),
                         is("n_layer", "layers", "28", "num_hidden_layers"),
                         is("n_head", "heads", "16", "num_attention_heads"),
                         is("n_inner", "ffn", "null"),
                         is("rotary_dim", "rotary_dims", "64"),
                         activation_is("activation_function", "\"gelu_new\""),
                         is("layer_norm_epsilon", "norm_epsilon", "1e-05"),
                         is("tie_word_embeddings", "tied", "false"),
                         ignored("embd_pdrop"),
                         ignored("resid_pdrop"),
                         ignored("attn_pdrop"),
                         ignored("n_ctx"),
                         ignored("rotary"),
                         only("scale_attn_weights", "true"),
                         ignored("summary_type"),
                         ignored("summary_use_proj"),
                         ignored("summary_activation"),
                         ignored("summary_proj_to_labels"),
                         ignored("summary_first_dropout")},
              .weights =
                  {{"wte.weight", "vocab , embed", {"embedding.table"}},
                   {"h.*.ln_1.weight", "embed", {"layer*.attention_norm.gamma"}},
                   {"h.*.ln_1.bias", "embed", {"layer*.attention_norm.beta"}},
                   {"h.*.attn.q_proj.weight", "kv_heads group head_dim , embed", {"layer*.attention.query.weight"}},
                   {"h.*.attn.k_proj.weight", "kv_heads head_dim , embed", {"layer*.attention.key.weight"}},
                   {"h.*.attn.v_proj.weight", "kv_heads head_dim , embed", {"layer*.attention.value.weight"}},
                   {"h.*.attn.out_proj.weight", "embed , kv_heads group head_dim", {"layer*.attention.output.weight"}},
                   {"h.*.mlp.fc_in.weight", "ffn , embed", {"layer*.ffn.up.weight"}},
                   {"h.*.mlp.fc_in.bias", "ffn", {"layer*.ffn.up.bias"}},
                   {"h.*.mlp.fc_out.weight", "embed , ffn", {"layer*.ffn.down.weight"}},
                   {"h.*.mlp.fc_out.bias", "embed", {"layer*.ffn.down.bias"}},
                   {"ln_f.weight", "embed", {"final_norm.gamma"}},
                   {"ln_f.bias", "embed", {"final_norm.beta"}},
                   {"lm_head.weight", "vocab , embed", {"head.table"}},
                   {"lm_head.bias", "vocab", {"head.bias"}}},
              .computed = {"h.*.attn.bias", "h.*.attn.masked_bias"}}};
}

}  // namespace kintsugi::models

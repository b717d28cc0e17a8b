// Gemma 3 (Gemma team 2025): norms, of weight plus one, before layers and on their outputs, a norm per head of queries
// and keys, windows with their own angles in five of six layers, scaled embedding.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family gemma3() {
  config::Model m = llama_defaults();
  m.tied = true;
  m.norm = "rms_plus_one";
  m.norm_place = "both";
  m.norm_epsilon = 1e-6;
  m.query_key_norm = "head";
  m.activation = "gelu_tanh";
  m.window = 4096;
  m.window_layers = {"window", "window", "window", "window", "window", "full"};
  m.rope_theta = 1000000.0;
  m.rope_theta_window = 10000.0;
  m.embed_scale = 0.0;
  std::vector<WeightRow> weights = llama_weights();
  for (WeightRow& row : weights)
    if (row.ours.front() == "layer*.ffn_norm.gamma") row.theirs = "layers.*.pre_feedforward_layernorm.weight";
  weights.insert(weights.end(),
                 {{"layers.*.post_attention_layernorm.weight", "embed", {"layer*.attention.output_norm.gamma"}},
                  {"layers.*.post_feedforward_layernorm.weight", "embed", {"layer*.ffn.down_norm.gamma"}},
                  {"layers.*.self_attn.q_norm.weight", "head_dim", {"layer*.attention.query_norm.gamma"}},
                  {"layers.*.self_attn.k_norm.weight", "head_dim", {"layer*.attention.key_norm.gamma"}}});
  return {.config = {.name = "gemma3",
                     .about = "Gemma 3 (text): four norms in a block, windows in five of six layers",
                     .defaults = m},
          .build = transformer,
          .hugging_face = {
              .model_types = {"gemma3_text"},
              .architectures = {{"Gemma3ForCausalLM"}},
              .prefix = "model.",
              .config = {is("vocab_size", "vocab", "262208"),
                         is("hidden_size", "embed", "2304"),
                         is("intermediate_size", "ffn", "9216"),
                         is("num_hidden_layers", "layers", "26"),
                         is("num_attention_heads", "heads", "8"),
                         is("num_key_value_heads", "kv_heads", "4"),
                         is("head_dim", "head_dim", "256"),
                         is("max_position_embeddings", "context", "131072"),
                         is("rms_norm_eps", "norm_epsilon", "1e-06"),
                         activation_is("hidden_activation", "\"gelu_pytorch_tanh\""),
                         is("tie_word_embeddings", "tied", "true"),
                         is("attention_bias", "bias_query_key_value", "false"),
                         is("attention_bias", "bias_output", "false"),
                         {"query_pre_attn_scalar", ConfigRow::Use::inverse_square_root, "attention_scale", "256"},
                         only("attn_logit_softcapping", "null"),
                         only("final_logit_softcapping", "null"),
                         only("use_bidirectional_attention", "false"),
                         ignored("attention_dropout"),
                         ignored("hidden_act")},
              .weights = weights,
              .rope = RopeKeys{.theta = 1000000.0,
                               .window_theta_key = "rope_local_base_freq",
                               .window_theta = 10000.0,
                               .scaled_windows = false},
              .windows = WindowKeys{.absent = "4096", .full_every = 6}}};
}

}  // namespace kintsugi::models

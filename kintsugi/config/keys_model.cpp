// Keys of [model].
#include "kintsugi/config/axes.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/context.h"
#include "kintsugi/config/key_rows.h"

namespace kintsugi::config {
namespace {

using enum Resume;

constexpr std::string_view kOfFamily = "that of the family";

template <auto M>
Key model(KeyRow row) {
  return key<&Settings::model, M>("model", std::move(row));
}

// A key whose default depends on the family.
template <auto M>
Key trait(std::string_view name, Allowed allowed, std::string_view help, std::string_view others = "") {
  Key key = model<M>({name, std::move(allowed), fixed, kOfFamily, help, others});
  key.of_family = true;
  return key;
}

}  // namespace

std::vector<Key> model_keys() {
  return {
      model<&Model::family>({"family", Name{"a family of models"}, fixed, "",
                             "model family; determines the defaults of the keys below",
                             "type arch architecture model_type"}),
      model<&Model::name>(
          {"name", Name{"a named size"}, fixed, "",
           "a published size, or the path of a Hugging Face folder; its sizes are the defaults of this section",
           "size preset"}),
      model<&Model::layers>({"layers", Integer{1, 10'000}, fixed, "", "transformer blocks",
                             "n_layer n_layers num_layers num_hidden_layers depth"}),
      model<&Model::embed>({"embed", Integer{1, kWide}, fixed, "", "width of the residual stream",
                            "n_embd dim d_model hidden_size width"}),
      model<&Model::heads>(
          {"heads", Integer{1, kWide}, fixed, "", "attention heads", "n_head n_heads num_heads num_attention_heads"}),
      model<&Model::kv_heads>({"kv_heads", Integer{0, kWide}, fixed, "heads",
                               "key-value heads, each shared by heads / kv_heads query heads",
                               "n_kv_heads num_key_value_heads num_query_groups"}),
      model<&Model::head_dim>(
          {"head_dim", Integer{0, kWide}, fixed, "embed / heads", "width of a head", "d_head d_kv kv_channels"}),
      model<&Model::ffn>({"ffn", Integer{0, 10'000'000}, fixed, "by the family, from embed",
                          "inner width of the feed-forward layer",
                          "d_ff hidden_dim intermediate_size ffn_hidden_size n_inner"}),
      model<&Model::vocab>({"vocab", Integer{0, 100'000'000}, fixed, "the data tokenizer's",
                            "rows of the embedding table; rows beyond the ids of the tokenizer are padding",
                            "vocab_size n_vocab vocabulary"}),
      model<&Model::context>({"context", Integer{0, kLarge}, fixed, "train.sequence", "maximum sequence length",
                              "n_positions n_ctx max_position_embeddings context_length positions max_seq_len"}),
      model<&Model::dropout>({"dropout", kFraction, fixed, "", "dropout rate of embedding, attention and residuals",
                              "dropout_rate attention_dropout hidden_dropout"}),
      trait<&Model::bias>("bias", Boolean{}, "biases of linear layers and layer norms; the default of the next four",
                          "use_bias add_bias_linear"),
      trait<&Model::bias_query_key_value>("bias_query_key_value", Boolean{}, "biases of query, key and value",
                                          "qkv_bias add_qkv_bias attention_bias"),
      trait<&Model::bias_output>("bias_output", Boolean{}, "bias of attention's output", "attention_out_bias"),
      trait<&Model::bias_ffn>("bias_ffn", Boolean{}, "biases of the feed-forward layer", "mlp_bias"),
      trait<&Model::bias_norm>("bias_norm", Boolean{}, "biases of layer norms"),
      trait<&Model::bias_head>("bias_head", Boolean{}, "bias of the head", "lm_head_bias"),
      trait<&Model::tied>("tied", Boolean{}, "share the head's weight with the embedding table",
                          "tie_word_embeddings tie_weights"),
      trait<&Model::norm>("norm", one_of(kNorms), "layer norm, RMS norm, or RMS norm with weight 1 + w",
                          "normalization norm_type"),
      trait<&Model::norm_place>("norm_place", one_of(kNormPlaces),
                                "placement of norms in a block: before attention and feed-forward layer, after the "
                                "residual addition, on their outputs, or both before and on outputs"),
      trait<&Model::norm_epsilon>("norm_epsilon", kPositive, "epsilon of norms, added to the variance",
                                  "rms_norm_eps layer_norm_epsilon norm_eps layernorm_epsilon layer_norm_eps"),
      trait<&Model::query_key_norm>("query_key_norm", one_of(kQueryKeyNorms),
                                    "norm of queries and keys: none, per head, or over all heads",
                                    "qk_norm use_qk_norm qk_layernorm"),
      trait<&Model::residual>("residual", one_of(kResiduals),
                              "attention and feed-forward layer in sequence, or in parallel on the same input, with "
                              "separate norms or one shared norm",
                              "use_parallel_residual parallel_attn"),
      trait<&Model::gated>("gated", Boolean{}, "use a gated feed-forward layer (GLU)", "glu swiglu"),
      trait<&Model::activation>("activation", OneOf{{"gelu", "gelu_tanh", "relu", "relu2", "silu"}},
                                "activation function of the feed-forward layer",
                                "hidden_act activation_function act hidden_activation"),
      trait<&Model::experts>("experts", Integer{0, 100'000}, "experts per layer; 0: a dense feed-forward layer",
                             "num_experts num_local_experts n_routed_experts moe_num_experts"),
      trait<&Model::experts_per_token>("experts_per_token", Integer{1, 100'000}, "experts selected per token",
                                       "num_experts_per_tok moe_top_k moe_router_topk"),
      trait<&Model::router_scores>("router_scores", one_of(kRouterScores),
                                   "function that turns router logits into scores",
                                   "scoring_func moe_router_score_function"),
      trait<&Model::router_normalize>("router_normalize", Boolean{},
                                      "normalize the weights of a token's experts to sum to 1", "norm_topk_prob"),
      trait<&Model::router_scale>("router_scale", kPositive, "factor of these weights", "routed_scaling_factor"),
      trait<&Model::router_bias>("router_bias", Boolean{}, "add a bias per expert to the scores when selecting experts",
                                 "moe_router_enable_expert_bias"),
      trait<&Model::router_linear_bias>("router_linear_bias", Boolean{}, "trained bias of the router logits"),
      trait<&Model::shared_experts>(
          "shared_experts", Integer{0, 1000},
          "experts used by all tokens, without routing: one dense layer of width shared_experts x ffn",
          "n_shared_experts num_shared_experts"),
      trait<&Model::dense_layers>("dense_layers", Integer{0, 10'000},
                                  "leading layers with a dense feed-forward layer instead of experts",
                                  "first_k_dense_replace"),
      trait<&Model::dense_ffn>("dense_ffn", Integer{0, 10'000'000}, "inner width of these dense layers; 0: ffn"),
      trait<&Model::expert_groups>("expert_groups", Integer{1, 100'000},
                                   "groups of consecutive experts; a group's score is the sum of its two largest",
                                   "n_group moe_router_num_groups"),
      trait<&Model::groups_per_token>("groups_per_token", Integer{1, 100'000},
                                      "groups selected per token, from which its experts are selected",
                                      "topk_group moe_router_group_topk"),
      trait<&Model::gate_clamp>(
          "gate_clamp", kNotNegative,
          "experts: bound c in g sigmoid(gate_slope g) (u + 1) of gate g <= c and up -c <= u <= c; 0: plain gating",
          "swiglu_limit"),
      trait<&Model::gate_slope>("gate_slope", kPositive, "slope of the sigmoid with gate_clamp", "swiglu_alpha"),
      trait<&Model::positions>("positions", one_of(kPositions), "position encoding", "position_embedding_type"),
      trait<&Model::rotary_layers>("rotary_layers", Texts{"a list of \"rotary\" and \"none\""},
                                   "which layers use rotary positions; the list repeats over the layers; empty: all",
                                   "no_rope_layers"),
      trait<&Model::rotary_dims>("rotary_dims", Integer{0, kWide}, "rotary dims per head; 0: all",
                                 "rotary_dim rotary_pct partial_rotary_factor"),
      trait<&Model::rotary_interleaved>("rotary_interleaved", Boolean{},
                                        "pair adjacent dims instead of the two halves"),
      trait<&Model::rope_theta>("rope_theta", kPositive, "base of the rotary angles",
                                "rotary_base theta rope_base rotary_emb_base"),
      trait<&Model::rope_theta_window>("rope_theta_window", kNotNegative,
                                       "base of layers with a window, unscaled; 0: same as rope_theta",
                                       "rope_local_base_freq"),
      trait<&Model::rope_scaling>("rope_scaling", one_of(kRopeScalings),
                                  "scaling of rotary frequencies for longer contexts", "rope_type"),
      trait<&Model::rope_factor>("rope_factor", kPositive, "divisor of the rotary angles"),
      trait<&Model::rope_original_context>("rope_original_context", Integer{0, kLarge}, "context length before scaling",
                                           "original_max_position_embeddings"),
      trait<&Model::rope_low_factor>("rope_low_factor", kPositive, "llama3: low frequency factor", "low_freq_factor"),
      trait<&Model::rope_high_factor>("rope_high_factor", kPositive, "llama3: high frequency factor",
                                      "high_freq_factor"),
      trait<&Model::rope_beta_fast>("rope_beta_fast", kPositive,
                                    "yarn: rotations above which frequencies are not scaled", "beta_fast"),
      trait<&Model::rope_beta_slow>("rope_beta_slow", kPositive,
                                    "yarn: rotations below which frequencies are fully scaled", "beta_slow"),
      trait<&Model::rope_truncate>("rope_truncate", Boolean{}, "yarn: round these bounds to whole dims"),
      trait<&Model::rope_magnitude>("rope_magnitude", kNotNegative,
                                    "factor of cosine and sine; 0: 1, or as defined by yarn and longrope",
                                    "attention_factor mscale"),
      trait<&Model::rope_score_magnitude>(
          "rope_score_magnitude", kNotNegative,
          "yarn: m of the factor (0.1 m ln(rope_factor) + 1)^2 of attention scores; 0: none", "mscale_all_dim"),
      trait<&Model::rope_short_factors>("rope_short_factors", Numbers{0, kPositive},
                                        "longrope: divisors of the frequencies up to rope_original_context",
                                        "short_factor"),
      trait<&Model::rope_long_factors>("rope_long_factors", Numbers{0, kPositive},
                                       "longrope: divisors of the frequencies beyond rope_original_context",
                                       "long_factor"),
      trait<&Model::window>("window", Integer{0, kLarge},
                            "sliding window: positions visible to a query, including its own; 0: all",
                            "sliding_window attention_window local_attention"),
      trait<&Model::window_layers>("window_layers", Texts{"a list of \"window\" and \"full\""},
                                   "which layers use the window; the list repeats over the layers; empty: all",
                                   "layer_types sliding_window_pattern"),
      trait<&Model::attention_scale>("attention_scale", kNotNegative,
                                     "scale of attention scores; 0: 1 / sqrt(head_dim)",
                                     "query_pre_attn_scalar attention_multiplier"),
      trait<&Model::attention_softcap>("attention_softcap", kNotNegative,
                                       "soft cap c of attention scores, c tanh(s / c); 0: none",
                                       "attn_logit_softcapping"),
      trait<&Model::attention_sinks>("attention_sinks", Boolean{},
                                     "add a learned score per head to the softmax of attention"),
      trait<&Model::kv_rank>("kv_rank", Integer{0, kWide},
                             "multi-head latent attention: width of the latent of keys and values; 0: none",
                             "kv_lora_rank"),
      trait<&Model::query_rank>("query_rank", Integer{0, kWide},
                                "latent attention: width of the latent of queries; 0: none", "q_lora_rank"),
      trait<&Model::rotary_head_dim>(
          "rotary_head_dim", Integer{0, kWide},
          "latent attention: rotary dims per head, in addition to head_dim; all key heads share them",
          "qk_rope_head_dim"),
      trait<&Model::value_head_dim>("value_head_dim", Integer{0, kWide},
                                    "latent attention: width of the values of a head; 0: head_dim", "v_head_dim"),
      trait<&Model::embed_scale>("embed_scale", kNotNegative, "scale of token embeddings; 0: sqrt(embed)",
                                 "embedding_multiplier"),
      trait<&Model::embed_norm>("embed_norm", Boolean{}, "norm of the embedded tokens", "embedding_norm"),
      trait<&Model::token_types>("token_types", Integer{0, kWide},
                                 "number of token types (segments) with an embedding; 0: none", "type_vocab_size"),
      trait<&Model::causal>("causal", Boolean{}, "causal attention", "is_causal is_decoder"),
      trait<&Model::objective>("objective", one_of(kObjectives),
                               "training objective: next token; masked tokens; masked tokens and next sentence; class "
                               "or numbers per sample; class or numbers per pixel",
                               "problem_type task head"),
      model<&Model::features>({"features", Integer{0, kLarge}, fixed, "that of the data",
                               "features per sample, for numeric data", "num_features in_features inputs"}),
      model<&Model::outputs>({"outputs", Integer{0, kLarge}, fixed, "that of the data",
                              "classes, or numbers to predict, per sample or pixel",
                              "num_labels num_classes out_features classes"}),
      model<&Model::image_channels>({"image_channels", Integer{0, kWide}, fixed, "that of the data", "image channels",
                                     "num_channels in_channels"}),
      model<&Model::image_height>({"image_height", Integer{0, kWide}, fixed, "that of the data",
                                   "image height in pixels", "image_size img_size resolution"}),
      model<&Model::image_width>(
          {"image_width", Integer{0, kWide}, fixed, "that of the data", "image width in pixels", ""}),
      model<&Model::image_depth>({"image_depth", Integer{0, kWide}, fixed, "that of the data",
                                  "volume depth in voxels; 0: two-dimensional images", ""}),
      model<&Model::image_dtype>({"image_dtype", OneOf{{"uint8", "fp32"}}, fixed, "that of the data",
                                  "dtype of image data; uint8 is scaled to [0, 1] before image_mean is subtracted",
                                  ""}),
      model<&Model::image_mean>({"image_mean", Numbers{0, kAnyNumber}, fixed, "0.5 for uint8, 0 for fp32",
                                 "mean that is subtracted from images: one number, or one per channel",
                                 "mean pixel_mean normalize_mean"}),
      model<&Model::image_deviation>({"image_deviation", Numbers{0, kPositive}, fixed, "0.5 for uint8, 1 for fp32",
                                      "deviation that images are divided by after that: one number, or one per channel",
                                      "image_std std pixel_std normalize_std"}),
      trait<&Model::patch>("patch", Integer{0, kWide}, "vit: patch size in pixels", "patch_size"),
      trait<&Model::class_token>("class_token", Boolean{},
                                 "vit: classify the output of a class token; otherwise the mean over tokens",
                                 "cls_token"),
      model<&Model::drop_path>({"drop_path", kFraction, fixed, "",
                                "stochastic depth rate of the last block, for convnext and transformer blocks; grows "
                                "linearly from 0 with depth",
                                "drop_path_rate stochastic_depth"}),
      trait<&Model::stem>("stem", one_of(kStems),
                          "resnet: first layer, one 3x3 convolution or a 7x7 convolution of stride 2 and a max pool; "
                          "auto: small for images of up to 64 pixels",
                          "stem_type"),
      trait<&Model::final_norm_epsilon>("final_norm_epsilon", kPositive,
                                        "convnext: epsilon of the norm before the head"),
      model<&Model::batch_norm>({"batch_norm", one_of(kBatchNorms), fixed, "",
                                 "samples whose statistics a batch norm uses: all of a pass over all data replicas, or "
                                 "those of each replica",
                                 "sync_bn sync_batchnorm sync_batch_norm"}),
      model<&Model::batch_norm_samples>({"batch_norm_samples", Integer{0, kLarge}, fixed, "train.micro_batch",
                                         "with batch_norm = \"replica\": consecutive samples that share statistics; "
                                         "divides train.micro_batch",
                                         "ghost_batch_size virtual_batch_size"}),
  };
}

}  // namespace kintsugi::config

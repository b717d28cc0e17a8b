#include "kintsugi/config/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kintsugi/base/error.h"
#include "kintsugi/config/axes.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/context.h"

namespace kintsugi::config {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMany = 1'000'000'000'000;  // steps
constexpr int64_t kLarge = 1'000'000'000;     // tokens per sample, samples per batch
constexpr int64_t kWide = 1'000'000;          // embedding size
constexpr int64_t kRanks = 1'000'000;         // size of a mesh axis
constexpr Number kPositive = {0, kInfinity, true};
constexpr Number kNotNegative = {0, kInfinity};
constexpr Number kFraction = {0, 1, false, true};

// Accesses member M of section S.
template <auto S, auto M>
struct Member {
  using T = std::decay_t<decltype(std::declval<Settings>().*S.*M)>;
  using Stored = std::conditional_t<std::is_same_v<T, uint64_t>, int64_t, T>;

  static Value get(const Settings& settings) { return static_cast<Stored>(settings.*S.*M); }
  static void set(Settings& settings, const Value& value) { settings.*S.*M = static_cast<T>(std::get<Stored>(value)); }
};

struct Row {
  std::string_view name;
  Allowed allowed;
  Resume resume;
  std::string_view rule;
  std::string_view help;
  std::string_view others = "";
};

template <auto S, auto M>
Key key(std::string_view section, Row row) {
  return {section,  row.name,  std::move(row.allowed), &Member<S, M>::get, &Member<S, M>::set, row.resume, row.rule,
          row.help, row.others};
}
template <auto M>
Key model(Row row) {
  return key<&Settings::model, M>("model", std::move(row));
}
template <auto M>
Key data(Row row) {
  return key<&Settings::data, M>("data", std::move(row));
}
template <auto M>
Key train(Row row) {
  return key<&Settings::train, M>("train", std::move(row));
}
template <auto M>
Key lora(Row row) {
  return key<&Settings::lora, M>("lora", std::move(row));
}
template <auto M>
Key dpo(Row row) {
  return key<&Settings::dpo, M>("dpo", std::move(row));
}
template <auto M>
Key grpo(Row row) {
  return key<&Settings::grpo, M>("grpo", std::move(row));
}
template <auto M>
Key parallel(Row row) {
  return key<&Settings::parallel, M>("parallel", std::move(row));
}
template <auto M>
Key checkpoint(Row row) {
  return key<&Settings::checkpoint, M>("checkpoint", std::move(row));
}
template <auto M>
Key launch(Row row) {
  return key<&Settings::launch, M>("launch", std::move(row));
}

template <auto M>
Key evaluate(Row row) {
  return key<&Settings::evaluate, M>("evaluate", std::move(row));
}

std::vector<std::string_view> words(std::span<const std::string_view> list) {
  return {list.begin(), list.end()};
}

OneOf one_of(std::span<const std::string_view> list) {
  return {words(list)};
}

// The key of a mesh axis, from its row.
Key size_of(const Axis& axis) {
  return {.section = "parallel",
          .name = axis.name,
          .allowed = Integer{1, kRanks},
          .get = [&axis](const Settings& s) -> Value { return axis.size(s.parallel); },
          .set = [&axis](Settings& s, const Value& value) { axis.set_size(s.parallel, std::get<int64_t>(value)); },
          .resume = Resume::free,
          .rule = "",
          .help = axis.help,
          .others = axis.others};
}

// "pipe x data x tensor x context"
std::string_view product_of_axes() {
  static const std::string kProduct = [] {
    std::string text;
    for (const Axis* axis : axes_of_product()) text += (text.empty() ? "" : " x ") + std::string(axis->name);
    return text;
  }();
  return kProduct;
}

using enum Resume;

// Each row: name, allowed values, resume, rule of a derived default, help, names elsewhere.
constexpr std::string_view kOfFamily = "that of the family";

// A key whose default depends on the family.
template <auto M>
Key trait(std::string_view name, Allowed allowed, std::string_view help, std::string_view others = "") {
  Key key = model<M>({name, std::move(allowed), fixed, kOfFamily, help, others});
  key.of_family = true;
  return key;
}

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
      trait<&Model::positions>("positions", one_of(kPositions), "how positions are told", "position_embedding_type"),
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
      trait<&Model::rope_factor>("rope_factor", kPositive, "by which angles are divided"),
      trait<&Model::rope_original_context>("rope_original_context", Integer{0, kLarge}, "context length before scaling",
                                           "original_max_position_embeddings"),
      trait<&Model::rope_low_factor>("rope_low_factor", kPositive, "llama3: low frequency factor", "low_freq_factor"),
      trait<&Model::rope_high_factor>("rope_high_factor", kPositive, "llama3: where it is whole", "high_freq_factor"),
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
                               "or numbers per sample; class per pixel",
                               "problem_type loss task head"),
      model<&Model::features>({"features", Integer{0, kLarge}, fixed, "that of the data",
                               "features per sample, for numeric data", "num_features in_features inputs"}),
      model<&Model::outputs>({"outputs", Integer{0, kLarge}, fixed, "that of the data",
                              "classes, or numbers to predict, per sample",
                              "num_labels num_classes out_features classes"}),
      model<&Model::image_channels>({"image_channels", Integer{0, kWide}, fixed, "that of the data", "image channels",
                                     "num_channels in_channels"}),
      model<&Model::image_height>(
          {"image_height", Integer{0, kWide}, fixed, "that of the data", "image height in pixels", ""}),
      model<&Model::image_width>(
          {"image_width", Integer{0, kWide}, fixed, "that of the data", "image width in pixels", ""}),
      model<&Model::image_depth>({"image_depth", Integer{0, kWide}, fixed, "that of the data",
                                  "volume depth in voxels; 0: two-dimensional images", ""}),
      model<&Model::image_dtype>({"image_dtype", OneOf{{"uint8", "fp32"}}, fixed, "that of the data",
                                  "dtype of image data; uint8 is scaled to [-1, 1]", ""}),
      trait<&Model::patch>("patch", Integer{0, kWide}, "vit: patch size in pixels", "patch_size"),
      trait<&Model::class_token>("class_token", Boolean{},
                                 "vit: classify the output of a class token; otherwise the mean over tokens",
                                 "cls_token"),
      model<&Model::drop_path>(
          {"drop_path", kFraction, fixed, "",
           "stochastic depth rate of the last block, for convnext and vit; grows linearly from 0 with depth",
           "drop_path_rate stochastic_depth"}),
  };
}

std::vector<Key> data_keys() {
  return {
      data<&Data::train>({"train", Sources{}, moved, "",
                          "training token files, from `kintsugi prepare`: a path, or a table of path = weight",
                          "path dataset train_path train_data data_path"}),
      data<&Data::validation>({"validation", Domains{}, moved, "",
                               "validation token files: a path, or a table of domain = path; empty: none",
                               "valid val eval validation_path test"}),
      data<&Data::reset_at_document>({"reset_at_document", Boolean{}, fixed, "",
                                      "restrict attention and loss to within documents",
                                      "reset_attention_mask reset_position_ids"}),
      data<&Data::begin_samples>({"begin_samples", Boolean{}, fixed, "",
                                  "prepend first_token to each sample; prompts and exported folders follow",
                                  "add_bos bos prepend_bos add_bos_token"}),
      data<&Data::train_labels>({"train_labels", Text{"a path"}, moved, "",
                                 "CSV file with the class or numbers of each training document, one per line",
                                 "labels train_targets"}),
      data<&Data::validation_labels>(
          {"validation_labels", Text{"a path"}, moved, "", "the same of validation", "validation_targets"}),
      data<&Data::crop_padding>({"crop_padding", Integer{0, 4096}, fixed, "",
                                 "zero padding from which training takes random crops of the image's size",
                                 "random_crop padding pad"}),
      data<&Data::flip>({"flip", Boolean{}, fixed, "", "mirror training images horizontally, with probability 1/2",
                         "horizontal_flip random_flip hflip"}),
      data<&Data::mask_share>({"mask_share", kFraction, fixed, "",
                               "fraction of tokens to predict, with objective masked",
                               "mlm_probability masked_lm_prob"}),
      data<&Data::mask_token>(
          {"mask_token", Integer{-1, 100'000'000}, fixed, "the tokenizer's", "id of the mask token", "mask_token_id"}),
      data<&Data::first_token>({"first_token", Integer{-1, 100'000'000}, fixed, "the tokenizer's",
                                "id prepended to each sample; -1: none", "cls_token_id"}),
      data<&Data::separator_token>({"separator_token", Integer{-1, 100'000'000}, fixed, "the tokenizer's",
                                    "id appended to each part of a sample; -1: none", "sep_token_id"}),
      data<&Data::chat_template>({"chat_template", Text{"a chat template"}, held, "the tokenizer folder's",
                                  "chat template of conversations, by name",
                                  "template conversation_template prompt_template"}),
      data<&Data::tokenizer>({"tokenizer", Text{"a path"}, moved, "that of train.init_from",
                              "tokenizer of conversations: a tokenizer.json or a folder that contains one",
                              "tokenizer_path tokenizer_name"}),
      data<&Data::long_conversations>(
          {"long_conversations", OneOf{{"refuse", "drop", "cut"}}, fixed, "",
           "conversations longer than train.sequence tokens: refuse, drop, or cut at the end", "truncation"}),
  };
}

std::vector<Key> train_keys() {
  return {
      train<&Train::folder>({"folder", Text{"a path"}, free, "",
                             "output folder of checkpoints, metrics and configuration",
                             "out_dir output_dir run_dir save_dir output"}),
      train<&Train::steps>({"steps", Integer{1, kMany}, free, "", "updates of the weights",
                            "max_iters max_steps train_iters iterations num_steps"}),
      train<&Train::global_batch>(
          {"global_batch", Integer{1, kLarge}, fixed, "", "samples per step", "batch_size batch global_batch_size"}),
      train<&Train::micro_batch>({"micro_batch", Integer{0, kLarge}, free,
                                  "global_batch / reproducible, or the largest divisor of global_batch / data up to 8",
                                  "samples per forward and backward pass; gradients accumulate over passes",
                                  "micro_batch_size train_micro_batch_size_per_gpu"}),
      train<&Train::sequence>({"sequence", Integer{1, kLarge}, fixed, "", "tokens per sample",
                               "block_size seq_length seq_len sequence_length"}),
      train<&Train::dtype>({"dtype", OneOf{{"fp32", "bf16", "fp16", "fp64"}}, fixed, "",
                            "compute dtype; master weights are fp32 (fp64 with fp64)", "precision torch_dtype"}),
      train<&Train::gradient_dtype>({"gradient_dtype", OneOf{{"fp32", "bf16"}}, free, "",
                                     "dtype of gradient accumulation and reduction (fp64 with fp64); bf16, with dtype "
                                     "bf16, halves their memory and traffic",
                                     "grad_dtype main_grads_dtype grad_accum_dtype gradient_accumulation_dtype"}),
      train<&Train::optimizer>({"optimizer", Name{"an optimizer"}, fixed, "", "update rule", "optim"}),
      train<&Train::method>({"method", one_of(kMethods), fixed, "",
                             "training objective: likelihood of the data, preferences (DPO), or rewards of sampled "
                             "answers (GRPO)",
                             "trainer rl"}),
      train<&Train::learning_rate>(
          {"learning_rate", kPositive, kept, "", "peak learning rate", "lr max_lr base_lr peak_lr"}),
      train<&Train::min_learning_rate>(
          {"min_learning_rate", kNotNegative, kept, "a tenth of learning_rate", "final learning rate", "min_lr"}),
      train<&Train::warmup_steps>(
          {"warmup_steps", Integer{0, kMany}, held, "a hundredth of steps, or of decay_steps if that is smaller",
           "steps of linear warm-up from 0", "warmup_iters lr_warmup_iters num_warmup_steps warmup"}),
      train<&Train::decay>(
          {"decay", OneOf{{"cosine", "linear", "constant", "inverse_sqrt", "step", "one_cycle", "wsd"}}, fixed, "",
           "learning rate schedule after warm-up", "schedule lr_decay_style scheduler lr_scheduler"}),
      train<&Train::decay_steps>({"decay_steps", Integer{0, kMany}, kept, "steps",
                                  "step at which the decay ends; kept when a run resumes", "lr_decay_iters"}),
      train<&Train::decay_every>({"decay_every", Integer{0, kMany}, fixed, "",
                                  "steps between decays, with decay \"step\"", "step_size lr_step_size"}),
      train<&Train::decay_factor>(
          {"decay_factor", kPositive, fixed, "", "factor of each decay, with decay \"step\"", "gamma lr_gamma"}),
      train<&Train::cooldown_steps>({"cooldown_steps", Integer{0, kMany}, kept, "a fifth of decay_steps",
                                     "steps of the final decay, with decay \"wsd\"",
                                     "wsd_decay_steps lr_wsd_decay_iters num_decay_steps"}),
      train<&Train::label_smoothing>({"label_smoothing", kFraction, fixed, "",
                                      "label smoothing: fraction of a label's weight spread over all classes",
                                      "smoothing"}),
      train<&Train::mixup>({"mixup", Number{0, 1, false, false}, fixed, "",
                            "mixup: mix each training image and its label with those of another one, with weights "
                            "from a Beta distribution with this parameter; 0: off",
                            "mixup_alpha"}),
      train<&Train::scale_learning_rate>({"scale_learning_rate", OneOf{{"none", "linear", "sqrt"}}, fixed, "",
                                          "scale learning rates by this function of global_batch / base_batch",
                                          "scale_lr"}),
      train<&Train::base_batch>({"base_batch", Integer{0, kLarge}, fixed, "",
                                 "the batch size that learning_rate was tuned for; required if scaled",
                                 "reference_batch base_batch_size"}),
      train<&Train::betas>(
          {"betas", Numbers{2, kFraction}, fixed, "", "decay of the two moments", "beta beta1 beta2 adam_betas"}),
      train<&Train::epsilon>(
          {"epsilon", kPositive, fixed, "", "epsilon in the denominator of the update", "eps adam_eps"}),
      train<&Train::momentum>({"momentum", kFraction, fixed, "", "momentum of sgd, nesterov and lars", "sgd_momentum"}),
      train<&Train::rho>({"rho", kFraction, fixed, "", "adadelta: decay of the two moving averages", "adadelta_rho"}),
      train<&Train::trust_coefficient>(
          {"trust_coefficient", kPositive, fixed, "", "lars: trust coefficient", "trust_coef eeta lars_eta"}),
      train<&Train::muon_momentum>({"muon_momentum", kFraction, fixed, "", "muon: momentum of matrices", "muon_beta"}),
      train<&Train::muon_scale>({"muon_scale", OneOf{{"rms", "shape"}}, fixed, "",
                                 "muon: scale updates by 0.2 sqrt(max(inputs, outputs)), which suits learning rates of "
                                 "adamw, or by sqrt(max(1, outputs / inputs))",
                                 "adjust_lr_fn muon_scale_mode"}),
      train<&Train::factor_decay>({"factor_decay", kPositive, fixed, "",
                                   "adafactor: second moments of step t decay by 1 - t^-factor_decay",
                                   "beta2_decay decay_rate"}),
      train<&Train::factor_clip>({"factor_clip", kPositive, fixed, "",
                                  "adafactor: clip the root mean square of a weight's update to this value",
                                  "clip_threshold clipping_threshold"}),
      train<&Train::weight_decay>(
          {"weight_decay", kNotNegative, fixed, "", "decoupled weight decay; not applied to norms and biases", "wd"}),
      train<&Train::rates>({"rates", Texts{"a list of name patterns with factors, as \"embedding 0.1\""}, fixed, "",
                            "learning rate factors: names of weights, or prefixes that end at a dot; * matches any "
                            "text; the first match applies",
                            "lr_mult param_groups layerwise_lr"}),
      train<&Train::ema_decay>({"ema_decay", kFraction, fixed, "",
                                "decay of a moving average of the weights, used for validation; 0: none",
                                "ema model_ema ema_rate"}),
      train<&Train::clip>({"clip", kNotNegative, fixed, "",
                           "clip the global gradient norm to this value; 0: no clipping",
                           "grad_clip clip_grad max_grad_norm gradient_clipping"}),
      train<&Train::balance>({"balance", one_of(kExpertBalances), fixed, "bias with router_bias, else loss",
                              "load balancing of experts: none, auxiliary loss per sample, selection bias, or both",
                              "moe_router_load_balancing_type"}),
      train<&Train::balance_weight>({"balance_weight", kNotNegative, fixed, "", "weight of the balance loss",
                                     "router_aux_loss_coef moe_aux_loss_coeff aux_loss_alpha"}),
      train<&Train::balance_rate>({"balance_rate", kNotNegative, fixed, "", "step size of the selection bias",
                                   "moe_router_bias_update_rate bias_update_speed"}),
      train<&Train::z_loss>({"z_loss", kNotNegative, fixed, "",
                             "weight of the router z-loss, the mean square of the logsumexp of router logits; 0: none",
                             "router_z_loss_coef moe_z_loss_coeff"}),
      train<&Train::expert_bound>({"expert_bound", kPositive, free,
                                   "experts / experts_per_token, which is always sufficient",
                                   "capacity of an expert per sample, relative to the mean",
                                   "capacity_factor expert_capacity moe_expert_capacity_factor"}),
      train<&Train::expert_overflow>({"expert_overflow", OneOf{{"stop", "drop"}}, fixed, "",
                                      "tokens without a free slot: stop the run, or drop the token from that expert",
                                      "moe_token_drop_policy"}),
      train<&Train::seed>({"seed", Integer{0, std::numeric_limits<int64_t>::max()}, fixed, "",
                           "random seed of initial weights, dropout and sample order", "random_seed"}),
      train<&Train::reproducible>({"reproducible", Integer{0, kLarge}, fixed, "",
                                   "split the batch into this many units, a power of two, and add their gradients in a "
                                   "fixed order: bits do not depend on the data axis; 0: off",
                                   "deterministic batch_invariant"}),
      train<&Train::evaluate_every>(
          {"evaluate_every", Integer{0, kMany}, free, "a twentieth of steps; 0 of fewer than 20",
           "steps between evaluations; 0: only at the end", "eval_interval eval_every eval_steps"}),
      train<&Train::evaluate_batches>(
          {"evaluate_batches", Integer{0, kMany}, free,
           "a quarter of those trained between evaluations, at least 4; all if evaluate_every is 0",
           "batches of global_batch samples per evaluation of each validation file, spread over it, the same for each "
           "evaluation and layout; 0: the whole file",
           "eval_iters eval_batches"}),
      train<&Train::sample_every>({"sample_every", Integer{0, kMany}, free,
                                   "evaluate_every if there are prompts, or steps where that is 0; 0 without prompts",
                                   "steps between generated samples; 0: never", "sample_interval sample_steps"}),
      train<&Train::prompts>({"prompts", Texts{"a list of texts, at most 64"}, free,
                              "none; one empty text if sample_every is given",
                              "prompts of generated samples; an empty one starts a document", "prompt"}),
      train<&Train::sample_length>(
          {"sample_length", Integer{1, 100'000}, free, "", "maximum tokens generated per prompt", "max_new_tokens"}),
      train<&Train::event_files>(
          {"event_files", Boolean{}, free, "", "also write TensorBoard event files", "tensorboard use_tensorboard"}),
      train<&Train::stop_after_minutes>({"stop_after_minutes", kNotNegative, free, "",
                                         "save and stop after this many minutes; 0: no limit",
                                         "exit_duration_in_mins max_time time_limit"}),
      train<&Train::init_from>({"init_from", Text{"a path"}, fixed, "",
                                "initialize weights from this checkpoint, run or Hugging Face folder; empty: random",
                                "load finetune pretrained init"}),
      train<&Train::init_new>({"init_new", Texts{"a list of name prefixes, e.g. \"head.\""}, fixed, "",
                               "prefixes of weights that are initialized randomly instead of from init_from",
                               "ignore_mismatched_sizes"}),
      train<&Train::freeze>({"freeze", Texts{"a list of name patterns, e.g. \"embedding.*\""}, fixed, "",
                             "weights that are not trained: names, or prefixes up to a dot; * matches any text",
                             "frozen freeze_layers trainable_params"}),
  };
}

std::vector<Key> lora_keys() {
  return {
      lora<&Lora::rank>({"rank", Integer{0, kWide}, fixed, "",
                         "rank of the adapters; only adapters are trained; 0: no adapters", "r lora_r lora_rank"}),
      lora<&Lora::alpha>(
          {"alpha", kNotNegative, fixed, "2 rank", "adapter outputs are scaled by alpha / rank", "lora_alpha"}),
      lora<&Lora::dropout>({"dropout", kFraction, fixed, "", "dropout of the adapters' input", "lora_dropout"}),
      lora<&Lora::targets>(
          {"targets", Texts{"a list of name patterns, e.g. \"query\""}, fixed, "",
           "linear layers with adapters: names or suffixes; * matches any text; empty: all in the blocks",
           "target_modules lora_target_modules"}),
  };
}

std::vector<Key> dpo_keys() {
  return {
      dpo<&Dpo::beta>({"beta", kPositive, fixed, "", "weight of the log-ratio to the reference, the initial model"}),
  };
}

std::vector<Key> grpo_keys() {
  return {
      grpo<&Grpo::group>(
          {"group", Integer{2, 4096}, fixed, "", "answers sampled per prompt", "num_generations group_size"}),
      grpo<&Grpo::length>({"length", Integer{1, kLarge}, fixed, "", "maximum number of tokens of an answer",
                           "max_completion_length max_new_tokens"}),
      grpo<&Grpo::temperature>(
          {"temperature", kPositive, fixed, "", "sampling temperature; 1: the model's own distribution"}),
      grpo<&Grpo::clip>({"clip", kFraction, fixed, "",
                         "bound of the distance from 1 of the ratio of a token's probabilities in training and "
                         "sampling; 0: none",
                         "epsilon cliprange"}),
      grpo<&Grpo::reward>({"reward", one_of(kRewards), fixed, "",
                           "reward of an answer: equal text, equal last number, a regular expression, or a program",
                           "reward_funcs"}),
      grpo<&Grpo::pattern>({"pattern", Text{"a regular expression"}, fixed, "",
                            "with reward \"pattern\": what to find in an answer; {answer} is the right one"}),
      grpo<&Grpo::program>({"program", Texts{"a list of a command and its arguments"}, fixed, "",
                            "with reward \"program\": reads a line of JSON per answer and prints its reward"}),
      grpo<&Grpo::timeout_seconds>(
          {"timeout_seconds", kPositive, free, "", "with reward \"program\": time limit per answer"}),
  };
}

std::vector<Key> other_parallel_keys() {
  return {
      parallel<&Parallel::zero>({"zero", Integer{0, 3}, free, "",
                                 "states sharded over the data axis: 1 optimizer, 2 also gradients, 3 also weights",
                                 "zero_stage fsdp stage sharding_strategy"}),
      parallel<&Parallel::shard_group>(
          {"shard_group", Integer{0, kRanks}, free, "",
           "shard within groups of this many data ranks, each with a full copy (hybrid sharding); 0: one group",
           "data_parallel_shard_degree hybrid_shard hsdp"}),
      parallel<&Parallel::shard_context>(
          {"shard_context", Boolean{}, free, "", "shard states over the context axis too", "shard_over_context"}),
      parallel<&Parallel::sequence_parallel>({"sequence_parallel", Boolean{}, free, "",
                                              "split the residual stream along tokens over the tensor axis",
                                              "sp enable_sequence_parallel"}),
      parallel<&Parallel::context_method>({"context_method", OneOf{words(context_methods())}, free, "",
                                           "attention across the context axis: gather keys and values, pass them "
                                           "around a ring, or exchange heads for tokens",
                                           "cp_comm_type"}),
      parallel<&Parallel::context_balance>(
          {"context_balance", OneOf{words(context_balances())}, free, "zigzag; contiguous with ulysses",
           "tokens per rank: one early and one late chunk (zigzag), or contiguous", "balance"}),
      parallel<&Parallel::space_dims>(
          {"space_dims", Text{"names of dims"}, free, "",
           "dims that the space axis may split; each factor splits the first that is long enough", "spatial_dims"}),
      parallel<&Parallel::keep_gathered>(
          {"keep_gathered", Boolean{}, free, "",
           "keep gathered activations for the backward pass instead of gathering them again", "reshard_after_forward"}),
      parallel<&Parallel::keep_logits>(
          {"keep_logits", Boolean{}, free, "",
           "with a split vocabulary, keep logits from the loss to its gradient instead of recomputing them",
           "loss_parallel"}),
      parallel<&Parallel::rules>({"rules", Texts{"a list of rules \"dim [in family] -> axes [, padded] [, in steps]\""},
                                  free, "", "user-defined rules, applied before those of the other keys", "plan rule"}),
      parallel<&Parallel::allow_repeat>({"allow_repeat", Boolean{}, free, "",
                                         "allow an axis that splits no dim: its ranks repeat work; otherwise an error",
                                         "allow_replication"}),
      parallel<&Parallel::mesh_order>({"mesh_order", Text{"the axes, outermost first"}, free, "",
                                       "order of mesh axes, outermost first; ranks along the last axis are adjacent",
                                       "axis_order order"}),
      parallel<&Parallel::schedule>({"schedule", OneOf{{"gpipe", "1f1b", "interleaved", "zero_bubble"}}, free, "",
                                     "pipeline schedule", "pipeline_schedule pp_schedule"}),
      parallel<&Parallel::chunks>({"chunks", Integer{1, 10'000}, free, "",
                                   "model chunks per stage; more than one with interleaved",
                                   "virtual_stages virtual_pipeline_model_parallel_size"}),
      parallel<&Parallel::stages>({"stages", Text{"how many layers each chunk has, in order: \"5 7\""}, free,
                                   "equal in computed cost", "layers of each chunk, in order",
                                   "split_points layers_per_stage"}),
      parallel<&Parallel::recompute>(
          {"recompute", OneOf{{"none", "light", "selective", "full"}}, free, "",
           "activation recomputation: none; norms and activations; core attention; or everything but layer inputs",
           "activation_checkpointing recompute_granularity gradient_checkpointing"}),
      parallel<&Parallel::recompute_every>(
          {"recompute_every", Integer{1, kWide}, free, "", "recompute every n-th layer", "recompute_num_layers"}),
      parallel<&Parallel::offload>({"offload", OneOf{{"none", "optimizer", "activations", "all"}}, free, "",
                                    "states and activations offloaded to a file, or on a GPU to host memory",
                                    "cpu_offload nvme_offload"}),
      parallel<&Parallel::offload_folder>({"offload_folder", Text{"a path"}, free, "the run's folder",
                                           "folder of the offload files, on a fast local disk",
                                           "nvme_path offload_path"}),
      parallel<&Parallel::memory_per_rank>(
          {"memory_per_rank", Text{"a size: \"16 GiB\""}, free,
           "the machine's memory, or the job's limit, divided by the ranks that share it",
           "memory limit per rank; a larger program is refused", "memory max_memory"}),
      parallel<&Parallel::wire>({"wire", OneOf{{"fp32", "bf16"}}, free, "",
                                 "dtype of gradients in collectives; fp32: not converted",
                                 "grad_reduce_dtype reduce_dtype mixed_precision_reduce"}),
      parallel<&Parallel::timeout_seconds>(
          {"timeout_seconds", kPositive, free, "",
           "timeout for other ranks and devices; the run then ends and names the ranks that did not respond",
           "timeout distributed_timeout_minutes nccl_timeout"}),
      parallel<&Parallel::cluster>({"cluster", Text{"a path"}, free, "",
                                    "cluster file of the machine, e.g. from kintsugi bench; runs print the predicted "
                                    "step time next to the measured one, and --layout auto uses it",
                                    "machine hardware"}),
      parallel<&Parallel::device>({"device", one_of(kDevices), free, "",
                                   "device of the ranks: cpu; reference, slow and simple kernels; cuda; emulated, GPU "
                                   "kernels on the CPU; auto: a GPU if usable, otherwise the CPU",
                                   "accelerator gpu kernels backend"}),
      parallel<&Parallel::tf32>({"tf32", Boolean{}, free, "",
                                 "fp32 matmuls on a GPU use TF32 operands: 8 times as fast, with a 10-bit fraction; "
                                 "train.dtype = \"bf16\" is faster still",
                                 "allow_tf32 matmul_precision float32_matmul_precision"}),
      parallel<&Parallel::transport>(
          {"transport", OneOf{{"auto", "threads", "mpi"}}, free, "",
           "transport between ranks: threads of one process, or MPI; auto: MPI if started under it",
           "backend distributed_backend"}),
      parallel<&Parallel::bind>({"bind", Boolean{}, free, "", "bind threads to cores", "binding affinity pin"}),
      parallel<&Parallel::replicas>(
          {"replicas", OneOf{{"trust", "check", "broadcast"}}, free, "",
           "replicated initial states: trust equal computation, check by checksum, or broadcast from the first rank",
           "broadcast_buffers sync_module_states"}),
      parallel<&Parallel::threads>({"threads", Integer{0, 10'000}, free, "available cores / ranks",
                                    "threads of each rank", "num_threads omp_num_threads cores"}),
      parallel<&Parallel::check_replicas_every>({"check_replicas_every", Integer{0, kMany}, free, "",
                                                 "steps between comparisons of replicated states by checksum; they are "
                                                 "also compared before each checkpoint; 0: never",
                                                 "replica_check_interval"}),
  };
}

std::vector<Key> parallel_keys() {
  std::vector<Key> list = {parallel<&Parallel::ranks>({"ranks", Integer{0, kRanks}, free, product_of_axes(),
                                                       "number of ranks; if given alone, sets data",
                                                       "world_size num_gpus nproc_per_node nproc"})};
  for (const Axis& axis : axes()) list.push_back(size_of(axis));
  for (Key& key : other_parallel_keys()) list.push_back(std::move(key));
  return list;
}

std::vector<Key> checkpoint_keys() {
  return {
      checkpoint<&Checkpoint::every>({"every", Integer{0, kMany}, free, "",
                                      "steps between checkpoints; 0: by time, and at the end",
                                      "save_interval save_every interval save_steps"}),
      checkpoint<&Checkpoint::every_minutes>({"every_minutes", kNotNegative, free, "",
                                              "minutes between checkpoints; 0: by steps, and at the end",
                                              "save_minutes checkpoint_minutes interval_minutes"}),
      checkpoint<&Checkpoint::keep>({"keep", Integer{1, 1'000'000}, free, "",
                                     "number of newest checkpoints to keep, besides the best",
                                     "save_total_limit keep_last"}),
      checkpoint<&Checkpoint::local>(
          {"local", Text{"a path"}, free, "",
           "node-local folder: checkpoints are written there and copied to the run's folder in the background; empty: "
           "none",
           "local_checkpoint_dir staging_dir"}),
  };
}

std::vector<Key> launch_keys() {
  return {
      launch<&Launch::max_restarts>({"max_restarts", Integer{0, 1'000'000}, free, "",
                                     "maximum number of restarts, over all jobs of the run", "max_retries retries"}),
      launch<&Launch::exclude_hours>({"exclude_hours", kNotNegative, free, "",
                                      "hours for which a node that caused a failure is excluded; 0: until the job ends",
                                      "quarantine_hours"}),
      launch<&Launch::quiet_seconds>(
          {"quiet_seconds", kPositive, free, "",
           "seconds without a heartbeat after which a rank, a node or the launcher counts as lost",
           "heartbeat_timeout watchdog_seconds"}),
      launch<&Launch::check_seconds>({"check_seconds", kNotNegative, free, "",
                                      "time limit of the node and link checks before the first step; 0: no checks",
                                      "health_check_seconds"}),
      launch<&Launch::shrink>({"shrink", Boolean{}, free, "",
                               "continue with fewer ranks at the same global batch if too few nodes are left",
                               "elastic"}),
  };
}

std::vector<Key> evaluate_keys() {
  return {
      evaluate<&Evaluate::tasks>({"tasks", Texts{"a list of names, as \"piqa\", or of files of tasks"}, free, "",
                                  "evaluation tasks during training", "eval_tasks tasks_names"}),
      evaluate<&Evaluate::tasks_folder>({"tasks_folder", Text{"a path"}, free, "",
                                         "the folder with the published files of the tasks, or with a folder for each",
                                         "tasks_data"}),
      evaluate<&Evaluate::tasks_every>(
          {"tasks_every", Integer{0, kMany}, free, "checkpoint.every, or train.evaluate_every if that is 0",
           "steps between evaluations of the tasks; 0: at the end only", "eval_tasks_every"}),
      evaluate<&Evaluate::tasks_documents>({"tasks_documents", Integer{0, kLarge}, free, "",
                                            "documents of each task, the first ones; 0: all", "eval_limit"}),
  };
}

std::vector<Key> list() {
  std::vector<Key> all;
  for (const auto& section : {model_keys, data_keys, train_keys, lora_keys, dpo_keys, grpo_keys, parallel_keys,
                              checkpoint_keys, launch_keys, evaluate_keys})
    for (Key& key : section()) all.push_back(std::move(key));
  return all;
}

}  // namespace

std::string Key::full_name() const {
  return fmt::format("{}.{}", section, name);
}

const std::vector<Key>& keys() {
  static const std::vector<Key> kKeys = list();
  return kKeys;
}

const std::vector<std::string_view>& sections() {
  static const std::vector<std::string_view> kSections = {"model", "data",     "train",      "lora",   "dpo",
                                                          "grpo",  "parallel", "checkpoint", "launch", "evaluate"};
  return kSections;
}

std::string_view describe_section(std::string_view section) {
  if (section == "model") return "the network";
  if (section == "data") return "what it learns from";
  if (section == "train") return "how it learns";
  if (section == "lora") return "low-rank adapters (LoRA), trained instead of the weights";
  if (section == "dpo") return "preferences (train.method \"dpo\")";
  if (section == "grpo") return "rewards (train.method \"grpo\")";
  if (section == "parallel") return "what it runs on";
  if (section == "launch") return "how kintsugi launch supervises the run";
  if (section == "checkpoint") return "what is saved";
  return "evaluation tasks during training";
}

}  // namespace kintsugi::config

// Keys of [data], [train], [lora], [dpo] and [grpo].
#include "kintsugi/config/axes.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/context.h"
#include "kintsugi/config/key_rows.h"

namespace kintsugi::config {
namespace {

using enum Resume;

template <auto M>
Key data(KeyRow row) {
  return key<&Settings::data, M>("data", std::move(row));
}

template <auto M>
Key train(KeyRow row) {
  return key<&Settings::train, M>("train", std::move(row));
}

template <auto M>
Key lora(KeyRow row) {
  return key<&Settings::lora, M>("lora", std::move(row));
}

template <auto M>
Key dpo(KeyRow row) {
  return key<&Settings::dpo, M>("dpo", std::move(row));
}

template <auto M>
Key grpo(KeyRow row) {
  return key<&Settings::grpo, M>("grpo", std::move(row));
}

}  // namespace

std::vector<Key> data_keys() {
  return {
      data<&Data::train>({"train", Sources{}, moved, "",
                          "training data: token files from `kintsugi prepare`, files or folders of images, or CSV "
                          "files; a path, or a table of path = weight",
                          "path dataset train_path train_data data_path"}),
      data<&Data::validation>(
          {"validation", Domains{}, moved, "",
           "validation data, of the kind of train: a path, or a table of domain = path; empty: none",
           "valid val eval validation_path test"}),
      data<&Data::reset_at_document>({"reset_at_document", Boolean{}, fixed, "",
                                      "restrict attention and loss to within documents",
                                      "reset_attention_mask reset_position_ids"}),
      data<&Data::begin_samples>({"begin_samples", Boolean{}, fixed, "",
                                  "prepend first_token to each sample; prompts and exported folders follow",
                                  "add_bos bos prepend_bos add_bos_token"}),
      data<&Data::train_labels>({"train_labels", Text{"a path"}, moved, "",
                                 "labels of the training data: a CSV file with one line per document or image, or for "
                                 "images an npy or idx file",
                                 "labels train_targets"}),
      data<&Data::validation_labels>(
          {"validation_labels", Text{"a path"}, moved, "", "labels of the validation data", "validation_targets"}),
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
                            "max_iters max_steps train_iters iterations num_steps epochs num_epochs max_epochs"}),
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
      train<&Train::optimizer>({"optimizer", Name{"an optimizer"}, fixed, "", "update rule", "optim nesterov"}),
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
      train<&Train::loss>({"loss", one_of(kFieldLosses), fixed, "",
                           "loss of fields: mean squared error over all elements, or the mean over samples of "
                           "norm(y - t) / norm(t)",
                           "criterion loss_fn loss_function"}),
      train<&Train::scale_learning_rate>({"scale_learning_rate", OneOf{{"none", "linear", "sqrt"}}, fixed, "",
                                          "scale learning rates by this function of global_batch / base_batch",
                                          "scale_lr"}),
      train<&Train::base_batch>({"base_batch", Integer{0, kLarge}, fixed, "",
                                 "the batch size that learning_rate was tuned for; required if scaled",
                                 "reference_batch base_batch_size"}),
      train<&Train::batch_warmup>({"batch_warmup", Texts{"a list of samples and steps, as \"64 1000\""}, fixed, "",
                                   "smaller batches in the first steps: samples per step, and the number of such steps",
                                   "rampup_batch_size batch_size_warmup"}),
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
          {"weight_decay", kNotNegative, fixed, "",
           "weight decay, decoupled or part of the gradient as the optimizer defines; not applied to norms and biases",
           "wd"}),
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
                              "load balancing of experts: none, auxiliary loss per sample, selection bias, both, or "
                              "auxiliary loss over the global batch",
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
           "linear layers with adapters: names or suffixes; * matches any text; empty: all in the blocks "
           "but experts",
           "target_modules lora_target_modules"}),
      lora<&Lora::frozen_dtype>({"frozen_dtype", OneOf{{"same", "bf16", "int8"}}, fixed, "",
                                 "storage of the frozen matrices of the blocks: same as train.dtype, bf16 or int8",
                                 "storage frozen_storage"}),
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

}  // namespace kintsugi::config

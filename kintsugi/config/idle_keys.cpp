#include "kintsugi/config/idle_keys.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/config/resolve_experts.h"

namespace kintsugi::config {
namespace {

// Warns of keys that only other optimizers use.
void warn_of_idle_optimizer_keys(Resolved& given) {
  const Optimizer* chosen = given.catalog->optimizer(given.settings.train.optimizer);
  base::require(chosen, "config", "no optimizer \"{}\"", given.settings.train.optimizer);
  std::vector<std::string_view> seen;
  for (const Optimizer& optimizer : given.catalog->optimizers)
    for (const std::string_view key : optimizer.keys) {
      if (std::ranges::count(seen, key) > 0) continue;
      seen.push_back(key);
      warn_if_idle(given, key, std::ranges::count(chosen->keys, key) > 0, "train.optimizer");
    }
}

void warn_of_idle_rotary_keys(Resolved& given, bool used, std::string_view other) {
  warn_if_idle(given,
               {"model.rope_theta", "model.rotary_layers", "model.rotary_dims", "model.rotary_interleaved",
                "model.rope_scaling", "model.rope_theta_window", "model.rope_magnitude"},
               used, other);
}

void warn_of_idle_scaling_keys(Resolved& given, bool used, std::string_view other) {
  warn_if_idle(given,
               {"model.rope_factor", "model.rope_original_context", "model.rope_low_factor", "model.rope_high_factor",
                "model.rope_beta_fast", "model.rope_beta_slow", "model.rope_truncate", "model.rope_score_magnitude",
                "model.rope_short_factors", "model.rope_long_factors"},
               used, other);
}

// Token keys with a family that does not read tokens.
void warn_of_idle_token_keys(Resolved& given) {
  const bool tokens = reads_tokens(given);
  warn_of_idle_rotary_keys(given, tokens, "model.family");
  warn_of_idle_scaling_keys(given, tokens, "model.family");
  if (given.settings.model.experts == 0) warn_of_idle_expert_keys(given);
  warn_if_idle(given, {"model.heads",           "model.bias_query_key_value",
                       "model.bias_output",     "model.norm_place",
                       "model.query_key_norm",  "model.residual",
                       "model.gated",           "model.tied",
                       "model.token_types",     "model.causal",
                       "model.embed_scale",     "model.embed_norm",
                       "model.window",          "model.window_layers",
                       "model.attention_scale", "model.attention_softcap",
                       "model.attention_sinks", "model.kv_rank",
                       "model.positions",       "data.reset_at_document"},
               tokens, "model.family");
}

void warn_of_idle_norm_keys(Resolved& given) {
  const Model& m = given.settings.model;
  const bool norms = m.family.starts_with("resnet") || m.family == "unet" || m.family.ends_with("_bn");
  warn_if_idle(given, {"model.batch_norm", "model.batch_norm_samples"}, norms, "model.family");
  if (norms) warn_if_idle(given, "model.batch_norm_samples", batch_norm(m) == BatchNorm::replica, "model.batch_norm");
}

// Keys of parts that the model lacks.
void warn_of_idle_model_keys(Resolved& given) {
  const Settings& s = given.settings;
  const bool images = given.catalog->family(s.model.family)->reads_images;
  warn_if_idle(given,
               {"model.patch", "model.class_token", "model.drop_path", "model.image_mean", "model.image_deviation"},
               images, "model.family");
  warn_if_idle(given, "model.stem", s.model.family.starts_with("resnet"), "model.family");
  warn_if_idle(given, "model.final_norm_epsilon", s.model.family.starts_with("convnext"), "model.family");
  warn_of_idle_norm_keys(given);
  if (!reads_tokens(given)) return warn_of_idle_token_keys(given);
  warn_if_idle(given,
               {"model.features", "model.image_channels", "model.image_height", "model.image_width",
                "model.image_depth", "model.image_dtype"},
               false, "model.family");
  const bool rotary = positions(s.model) == Positions::rotary, scaled = rope_scaling(s.model) != RopeScaling::none;
  warn_of_idle_rotary_keys(given, rotary, "model.positions");
  warn_of_idle_scaling_keys(given, rotary && scaled, rotary ? "model.rope_scaling" : "model.positions");
  warn_if_idle(given, {"model.window_layers", "model.rope_theta_window"}, s.model.window > 0, "model.window");
  warn_of_idle_expert_keys(given);
}

// Data keys of other objectives.
void warn_of_idle_data_keys(Resolved& given) {
  const Settings& s = given.settings;
  const Objective learnt = objective(s.model);
  const bool masks = learnt == Objective::masked || learnt == Objective::masked_next;
  const bool labels = learnt == Objective::classes || learnt == Objective::numbers || learnt == Objective::pixels ||
                      learnt == Objective::fields;
  warn_if_idle(given, {"data.mask_share", "data.mask_token"}, masks, "model.objective");
  const bool marks = masks || (labels && reads_tokens(given));
  warn_if_idle(given, {"data.separator_token"}, marks, "model.objective");
  if (!s.data.begin_samples) warn_if_idle(given, {"data.first_token"}, marks, "model.objective");
  if (learns_conversations(s.data)) warn_if_idle(given, {"data.begin_samples"}, false, "data.train");
  warn_if_idle(given, {"data.begin_samples"}, learnt == Objective::next, "model.objective");
  const bool images = given.catalog->family(s.model.family)->reads_images;
  warn_if_idle(given, {"data.train_labels", "data.validation_labels"}, labels && (images || reads_tokens(given)),
               "model.objective");
  warn_if_idle(given, "model.outputs", labels, "model.objective");
  warn_if_idle(given, "train.loss", learnt == Objective::fields, "model.objective");
}

}  // namespace

void warn_of_idle_keys(Resolved& given) {
  const Settings& s = given.settings;
  warn_of_idle_model_keys(given);
  warn_of_idle_data_keys(given);
  warn_of_idle_optimizer_keys(given);
  for (const std::string_view key : {"data.chat_template", "data.tokenizer", "data.long_conversations"})
    warn_if_idle(given, key, learns_conversations(s.data), "data.train");
  for (const std::string_view key : {"lora.alpha", "lora.dropout", "lora.targets", "lora.frozen_dtype"})
    warn_if_idle(given, key, s.lora.rank > 0, "lora.rank");
  warn_if_idle(given, "dpo.beta", method(s.train) == Method::dpo, "train.method");
  for (const std::string_view key : {"grpo.group", "grpo.length", "grpo.temperature", "grpo.clip", "grpo.reward",
                                     "grpo.pattern", "grpo.program", "grpo.timeout_seconds"})
    warn_if_idle(given, key, method(s.train) == Method::grpo, "train.method");
  const bool images = given.catalog->family(s.model.family)->reads_images;
  warn_if_idle(given, "data.crop_padding", images, "model.family");
  warn_if_idle(given, "data.flip", images, "model.family");
  warn_if_idle(given, "train.init_new", !s.train.init_from.empty(), "train.init_from");
  warn_if_idle(given, "train.cooldown_steps", s.train.decay == "wsd", "train.decay");
  warn_if_idle(given, "train.base_batch", s.train.scale_learning_rate != "none", "train.scale_learning_rate");
  const bool validates = !s.data.validation.empty();
  warn_if_idle(given, "train.evaluate_every", validates || s.train.evaluate_every == 0, "data.validation");
  const bool tasks = !s.evaluate.tasks.empty();
  warn_if_idle(given, "evaluate.tasks_folder", tasks, "evaluate.tasks");
  warn_if_idle(given, "evaluate.tasks_every", tasks || s.evaluate.tasks_every == 0, "evaluate.tasks");
  warn_if_idle(given, "evaluate.tasks_documents", tasks, "evaluate.tasks");
  warn_if_idle(given, "train.prompts", s.train.sample_every > 0, "train.sample_every");
  warn_if_idle(given, "train.sample_length", s.train.sample_every > 0, "train.sample_every");
  warn_if_idle(given, "train.evaluate_batches", validates || s.train.evaluate_batches == 0, "data.validation");
}

}  // namespace kintsugi::config

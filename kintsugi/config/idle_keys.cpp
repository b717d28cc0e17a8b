#include "kintsugi/config/idle_keys.h"

#include <fmt/format.h>

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

// Keys of [model] that all families read, or that other keys switch on, as warn_of_idle_block_keys says.
constexpr std::string_view kCommonKeys[] = {"family",
                                            "name",
                                            "layers",
                                            "objective",
                                            "outputs",
                                            "experts_per_token",
                                            "router_scores",
                                            "router_normalize",
                                            "router_scale",
                                            "router_linear_bias",
                                            "shared_experts",
                                            "dense_layers",
                                            "expert_groups",
                                            "groups_per_token",
                                            "gate_clamp",
                                            "gate_slope",
                                            "dense_ffn",
                                            "router_bias",
                                            "query_rank",
                                            "rotary_head_dim",
                                            "value_head_dim",
                                            "window_layers",
                                            "rope_theta",
                                            "rotary_layers",
                                            "rotary_dims",
                                            "rotary_interleaved",
                                            "rope_scaling",
                                            "rope_theta_window",
                                            "rope_magnitude",
                                            "rope_factor",
                                            "rope_original_context",
                                            "rope_low_factor",
                                            "rope_high_factor",
                                            "rope_beta_fast",
                                            "rope_beta_slow",
                                            "rope_truncate",
                                            "rope_score_magnitude",
                                            "rope_short_factors",
                                            "rope_long_factors"};
constexpr std::string_view kBlockKeys[] = {"embed",
                                           "heads",
                                           "kv_heads",
                                           "head_dim",
                                           "ffn",
                                           "dropout",
                                           "drop_path",
                                           "bias",
                                           "bias_query_key_value",
                                           "bias_output",
                                           "bias_ffn",
                                           "bias_norm",
                                           "norm",
                                           "norm_place",
                                           "norm_epsilon",
                                           "query_key_norm",
                                           "residual",
                                           "gated",
                                           "activation",
                                           "experts",
                                           "positions",
                                           "causal",
                                           "window",
                                           "attention_scale",
                                           "attention_softcap",
                                           "attention_sinks",
                                           "kv_rank"};
constexpr std::string_view kTokenKeys[] = {"vocab",       "context",    "bias_head",  "tied",
                                           "embed_scale", "embed_norm", "token_types"};
constexpr std::string_view kImageKeys[] = {"image_channels", "image_height", "image_width",    "image_depth",
                                           "image_dtype",    "image_mean",   "image_deviation"};

bool reads(const Family& family, const Key& key) {
  const auto is_in = [&](const auto& list) { return std::ranges::count(list, key.name) > 0; };
  if (is_in(kCommonKeys) || std::ranges::count(family.keys, key.full_name()) > 0) return true;
  if ((family.reads_tokens || family.has_blocks) && is_in(kBlockKeys)) return true;
  if (family.reads_tokens) return is_in(kTokenKeys);
  return family.reads_images ? is_in(kImageKeys) : key.name == "features";
}

// Whether the key has the value that it would have if it were not given.
bool has_default(const Given& given, size_t index) {
  const Key& key = keys()[index];
  Settings family;
  family.model = given.catalog->family(given.settings.model.family)->defaults;
  Given without = given;
  key.set(without.settings, key.get(family));
  without.origins[index] = {};
  return key.get(fill_derived(std::move(without), 1).settings) == key.get(given.settings);
}

// Keys of [model] that the family does not read.
void warn_of_idle_family_keys(Resolved& given, const Family& family) {
  for (size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    if (key.section != "model" || !given.origins[i].given() || reads(family, key) || has_default(given, i)) continue;
    given.warnings.push_back(fmt::format("{}{} has no effect with {}", place(given, {key.full_name()}),
                                         given.say(key.full_name()), given.say("model.family")));
  }
  warn_if_idle(given, {"data.reset_at_document"}, family.reads_tokens, "model.family");
}

// Keys of parts that the blocks lack.
void warn_of_idle_block_keys(Resolved& given) {
  const Settings& s = given.settings;
  const bool rotary = positions(s.model) == Positions::rotary, scaled = rope_scaling(s.model) != RopeScaling::none;
  warn_of_idle_rotary_keys(given, rotary, "model.positions");
  warn_of_idle_scaling_keys(given, rotary && scaled, rotary ? "model.rope_scaling" : "model.positions");
  warn_if_idle(given, {"model.window_layers", "model.rope_theta_window"}, s.model.window > 0, "model.window");
  warn_of_idle_expert_keys(given);
}

// Keys of parts that the model lacks.
void warn_of_idle_model_keys(Resolved& given) {
  const Model& m = given.settings.model;
  const Family& family = *given.catalog->family(m.family);
  warn_of_idle_family_keys(given, family);
  warn_of_idle_block_keys(given);
  const auto warn = [&](std::string_view key, bool used, std::string_view other) {
    if (reads(family, keys()[static_cast<size_t>(key_index(key))])) warn_if_idle(given, {key}, used, other);
  };
  warn("model.batch_norm_samples", batch_norm(m) == BatchNorm::replica, "model.batch_norm");
  const bool blocks = family.reads_tokens || family.has_blocks;
  warn("model.drop_path", !blocks || residual(m) == Residual::sequential, "model.residual");
  warn("model.bias_norm", !blocks || norm(m) == Norm::layer, "model.norm");
  // Patches have learned positions in any case.
  warn("model.positions", family.reads_tokens || positions(m) == Positions::rotary, "model.family");
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
  warn_if_idle(given, "train.decay_every", s.train.decay == "step", "train.decay");
  warn_if_idle(given, "train.decay_factor", s.train.decay == "step", "train.decay");
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

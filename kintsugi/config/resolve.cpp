#include "kintsugi/config/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/config/idle_keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve_experts.h"
#include "kintsugi/config/resolve_parallel.h"

namespace kintsugi::config {
namespace {

// `bias` is the default of all biases that are not given.
void derive_biases(Given& given) {
  Model& m = given.settings.model;
  if (!given.origin("model.bias").given()) return;
  derive_ungiven(given, "model.bias_query_key_value", m.bias_query_key_value, m.bias, "bias");
  derive_ungiven(given, "model.bias_output", m.bias_output, m.bias, "bias");
  derive_ungiven(given, "model.bias_ffn", m.bias_ffn, m.bias, "bias");
  derive_ungiven(given, "model.bias_norm", m.bias_norm, m.bias, "bias");
}

void derive_model(Given& given) {
  Model& m = given.settings.model;
  derive_biases(given);
  const Family* family = given.catalog->family(m.family);
  base::require(family, "config", "no family \"{}\"", m.family);
  Settings defaults;
  defaults.model = family->defaults;
  for (size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    if (!key.of_family || given.origins[i].kind != Origin::Kind::standard) continue;
    key.set(given.settings, key.get(defaults));
    given.origins[i] = {Origin::Kind::derived, std::string(key.rule)};
  }
  if (m.patch > 0 && objective(m) == Objective::fields && !given.origin("model.class_token").given())
    store(given, "model.class_token", m.class_token, false, "model.objective");
  if (family->layers > 0) derive_ungiven(given, "model.layers", m.layers, family->layers, "model.family");
  derive<int64_t>(given, "model.kv_heads", m.kv_heads, 0, m.heads);
  derive<int64_t>(given, "model.head_dim", m.head_dim, 0, m.embed / m.heads);
  derive<int64_t>(given, "model.ffn", m.ffn, 0, family->ffn.of(m.embed));
  derive_expert_widths(given);
  if (!family->reads_tokens) derive<int64_t>(given, "model.vocab", m.vocab, 0, 1);
}

void derive_lengths(Given& given) {
  Model& m = given.settings.model;
  Train& t = given.settings.train;
  const int sequence = key_index("train.sequence");
  if (!reads_tokens(given)) {
    if (given.origins[sequence].given() && t.sequence != 1)
      given.warnings.push_back(fmt::format("{}{} has no effect with {}", place(given, {"train.sequence"}),
                                           given.say("train.sequence"), given.say("model.family")));
    t.sequence = 1;
    given.origins[sequence] = {Origin::Kind::derived, "model.family"};
  }
  if (given.origins[sequence].kind == Origin::Kind::standard && m.context > 0 && m.context < t.sequence) {
    t.sequence = m.context;
    given.origins[sequence] = {Origin::Kind::derived, "model.context"};
  }
  derive<int64_t>(given, "model.context", m.context, 0, t.sequence);
}

void check_heads(const Given& given) {
  const Model& m = given.settings.model;
  const bool divided = given.origin("model.head_dim").kind == Origin::Kind::derived;
  if (divided && m.embed % m.heads != 0)
    throw base::UserError("config", "{}{} is not divisible by {}; nearest embed: {}; nearest heads: {}",
                          place(given, {"model.embed", "model.heads"}), given.say("model.embed"),
                          given.say("model.heads"), multiples_around(m.embed, m.heads),
                          divisors_around(m.embed, m.heads));
  if (m.heads % m.kv_heads != 0)
    throw base::UserError("config", "{}{} is not divisible by {}; nearest kv_heads: {}",
                          place(given, {"model.kv_heads", "model.heads"}), given.say("model.heads"),
                          given.say("model.kv_heads"), divisors_around(m.heads, m.kv_heads));
  if (has_latent_attention(m)) return check_latent_attention(given);
  if (positions(m) != Positions::rotary) return;
  if (m.rotary_dims > m.head_dim || m.rotary_dims % 2 != 0)
    throw base::UserError("config", "{}{} must be even and at most {}", place(given, {"model.rotary_dims"}),
                          given.say("model.rotary_dims"), given.say("model.head_dim"));
  if (m.rotary_dims != 0 || m.head_dim % 2 == 0) return;
  if (!divided)
    throw base::UserError("config", "{}{} is odd, but rotary embedding turns pairs; nearest: {}",
                          place(given, {"model.head_dim"}), given.say("model.head_dim"),
                          multiples_around(m.head_dim, 2));
  throw base::UserError(
      "config", "{}{} over {} is {}, an odd width of a head, but rotary embedding turns pairs; nearest embed: {}",
      place(given, {"model.embed", "model.heads"}), given.say("model.embed"), given.say("model.heads"), m.head_dim,
      multiples_around(m.embed, 2 * m.heads));
}

// Checks the words of a per-layer list.
void check_layers(const Given& given, std::string_view key, const std::vector<std::string>& layers,
                  std::span<const std::string_view> words) {
  for (const std::string& word : layers)
    if (std::ranges::count(words, word) == 0)
      throw base::UserError("config", "{}{} holds \"{}\"; it must be a list of \"{}\"", place(given, {key}), key,
                            base::one_line(word, 40), fmt::join(words, "\" and \""));
}

void check_rope(const Given& given) {
  const Model& m = given.settings.model;
  const int64_t turned = has_latent_attention(m) ? m.rotary_head_dim : m.rotary_dims ? m.rotary_dims : m.head_dim;
  const auto need = [&](bool fine, std::string_view key, std::string_view what) {
    if (!fine)
      throw base::UserError("config", "{}{} needs {}, {}", place(given, {key, "model.rope_scaling"}),
                            given.say("model.rope_scaling"), key, what);
  };
  switch (rope_scaling(m)) {
    case RopeScaling::none:
    case RopeScaling::linear:
      return;
    case RopeScaling::longrope:
      for (const auto& [key, factors] : {std::pair{"model.rope_short_factors", &m.rope_short_factors},
                                         std::pair{"model.rope_long_factors", &m.rope_long_factors}})
        need(static_cast<int64_t>(factors->size()) == turned / 2, key,
             fmt::format("{} numbers, one for each pair of dims; it has {}", turned / 2, factors->size()));
      [[fallthrough]];
    case RopeScaling::llama3:
    case RopeScaling::yarn:
      need(m.rope_original_context > 0, "model.rope_original_context", "the positions before scaling");
  }
  need(rope_scaling(m) != RopeScaling::llama3 || m.rope_high_factor > m.rope_low_factor, "model.rope_high_factor",
       "above model.rope_low_factor");
  need(rope_scaling(m) != RopeScaling::yarn || m.rope_theta > 1.0, "model.rope_theta", "above 1");
}

void check_objective(const Given& given) {
  const Model& m = given.settings.model;
  const Family& family = *given.catalog->family(m.family);
  std::vector<std::string_view> allowed = {family.defaults.objective};
  for (const std::string_view other : family.objectives) allowed.push_back(other);
  if (std::ranges::count(allowed, m.objective) == 0)
    throw base::UserError("config", "{}{} is not possible with {}, which supports {}",
                          place(given, {"model.objective", "model.family"}), given.say("model.objective"),
                          given.say("model.family"), fmt::join(allowed, ", "));
  if (objective(m) == Objective::classes && m.outputs < 2 && family.reads_tokens)
    throw base::UserError("config", "{}{} needs model.outputs, the number of classes, at least 2",
                          place(given, {"model.objective"}), given.say("model.objective"));
  if (objective(m) == Objective::numbers && m.outputs < 1 && family.reads_tokens)
    throw base::UserError("config", "{}{} needs model.outputs, the numbers of each sample",
                          place(given, {"model.objective"}), given.say("model.objective"));
  if (objective(m) == Objective::fields && m.patch > 0 && m.class_token)
    throw base::UserError("config",
                          "{}{} is not possible with {}, which are made of the tokens of patches; leave it out",
                          place(given, {"model.class_token", "model.objective"}), given.say("model.class_token"),
                          given.say("model.objective"));
  if (objective(m) == Objective::next && m.token_types > 0)
    throw base::UserError("config", "{}{} is not possible with {}: tokens of one text have no types; leave it out",
                          place(given, {"model.token_types", "model.objective"}), given.say("model.token_types"),
                          given.say("model.objective"));
}

// Numbers per channel: one for all, or as many as there are channels, once these are known.
void check_normalization(const Given& given) {
  const Model& m = given.settings.model;
  for (const auto& [key, numbers] :
       {std::pair{"model.image_mean", &m.image_mean}, std::pair{"model.image_deviation", &m.image_deviation}}) {
    const auto count = static_cast<int64_t>(numbers->size());
    if (count > 1 && m.image_channels > 0 && count != m.image_channels)
      throw base::UserError("config", "{}{} has {} numbers, but images have {} channel{}; it must have {}",
                            place(given, {key}), key, count, m.image_channels, m.image_channels == 1 ? "" : "s",
                            m.image_channels == 1 ? "1" : fmt::format("1 or {}", m.image_channels));
  }
}

void check_model(const Given& given) {
  const Model& m = given.settings.model;
  check_objective(given);
  if (const int64_t fixed = given.catalog->family(m.family)->layers; fixed > 0 && m.layers != fixed)
    throw base::UserError("config", "{}{} is not possible with {}, which has {} layers; leave it out",
                          place(given, {"model.layers", "model.family"}), given.say("model.layers"),
                          given.say("model.family"), fixed);
  check_normalization(given);
  if (!reads_tokens(given)) return;
  check_heads(given);
  check_layers(given, "model.window_layers", m.window_layers, kWindowLayers);
  check_layers(given, "model.rotary_layers", m.rotary_layers, kRotaryLayers);
  check_rope(given);
  if (residual(m) != Residual::sequential && norm_place(m) != NormPlace::before)
    throw base::UserError("config", "{}{} is not possible with {}; norm_place must be \"before\"",
                          place(given, {"model.residual", "model.norm_place"}), given.say("model.residual"),
                          given.say("model.norm_place"));
}

void check_lengths(const Given& given) {
  if (given.settings.train.sequence > given.settings.model.context)
    throw base::UserError("config", "{}{} is longer than {}; lower sequence or raise context",
                          place(given, {"train.sequence", "model.context"}), given.say("train.sequence"),
                          given.say("model.context"));
}

void check_gradient_dtype(const Given& given) {
  const Train& t = given.settings.train;
  if (t.gradient_dtype == "bf16" && t.dtype != "bf16")
    throw base::UserError("config", "{}{} needs train.dtype = \"bf16\", and there is {}; leave it out for {}",
                          place(given, {"train.gradient_dtype", "train.dtype"}), given.say("train.gradient_dtype"),
                          given.say("train.dtype"), t.dtype == "fp64" ? "fp64" : "fp32");
}

void check_schedule(Resolved& given) {
  const Train& t = given.settings.train;
  if (t.min_learning_rate > t.learning_rate)
    throw base::UserError("config", "{}{} is more than {}; lower it, or leave it out for a tenth",
                          place(given, {"train.min_learning_rate", "train.learning_rate"}),
                          given.say("train.min_learning_rate"), given.say("train.learning_rate"));
  if (t.scale_learning_rate != "none" && t.base_batch == 0)
    throw base::UserError("config", "{}{} needs train.base_batch, the batch that learning_rate was chosen for",
                          place(given, {"train.scale_learning_rate"}), given.say("train.scale_learning_rate"));
  if (t.decay == "step" && t.decay_every < 1)
    throw base::UserError("config", "{}{} needs train.decay_every, the steps between two falls of the learning rate",
                          place(given, {"train.decay"}), given.say("train.decay"));
  if (t.label_smoothing > 0.0 && objective(given.settings.model) != Objective::classes &&
      objective(given.settings.model) != Objective::pixels)
    throw base::UserError("config", "{}{} needs model.objective = \"classes\" or \"pixels\"",
                          place(given, {"train.label_smoothing"}), given.say("train.label_smoothing"));
  const bool images = given.catalog->family(given.settings.model.family)->reads_images;
  if (t.mixup > 0.0 && (!images || (objective(given.settings.model) != Objective::classes &&
                                    objective(given.settings.model) != Objective::numbers &&
                                    objective(given.settings.model) != Objective::fields)))
    throw base::UserError("config",
                          "{}{} needs a model of images with the objective \"classes\", \"numbers\" or \"fields\"",
                          place(given, {"train.mixup"}), given.say("train.mixup"));
  const bool ends = t.decay == "cosine" || t.decay == "linear" || t.decay == "one_cycle" || t.decay == "wsd";
  if (t.decay == "wsd" && t.cooldown_steps > t.decay_steps - std::max<int64_t>(t.warmup_steps, 0))
    throw base::UserError("config", "{}{} is more than the {} that {} leaves after the warm-up",
                          place(given, {"train.cooldown_steps", "train.decay_steps"}),
                          given.say("train.cooldown_steps"), t.decay_steps - std::max<int64_t>(t.warmup_steps, 0),
                          given.say("train.decay_steps"));
  if (t.warmup_steps > t.steps)
    given.warnings.push_back(fmt::format("{}{} is more than {}: the learning rate never reaches its maximum",
                                         place(given, {"train.warmup_steps", "train.steps"}),
                                         given.say("train.warmup_steps"), given.say("train.steps")));
  else if (ends && t.warmup_steps > t.decay_steps)
    throw base::UserError("config", "{}{} is more than {}: the decay would end before it begins",
                          place(given, {"train.decay_steps", "train.warmup_steps"}), given.say("train.warmup_steps"),
                          given.say("train.decay_steps"));
}

// Derives warm-up and evaluation intervals that are not given.
void derive_pace(Given& given) {
  constexpr int64_t kEvaluations = 20;
  constexpr std::string_view kNoData = "there is no data.validation";
  Settings& s = given.settings;
  Train& t = s.train;
  if (t.decay == "one_cycle" && t.warmup_steps < 0)
    store<int64_t>(given, "train.warmup_steps", t.warmup_steps, t.decay_steps * 3 / 10, "3 tenths of decay_steps");
  derive<int64_t>(given, "train.warmup_steps", t.warmup_steps, -1, std::min(t.steps, t.decay_steps) / 100);
  if (s.data.validation.empty()) {
    if (t.evaluate_every < 0) store<int64_t>(given, "train.evaluate_every", t.evaluate_every, 0, kNoData);
    if (t.evaluate_batches < 0) store<int64_t>(given, "train.evaluate_batches", t.evaluate_batches, 0, kNoData);
    return;
  }
  derive<int64_t>(given, "train.evaluate_every", t.evaluate_every, -1,
                  t.steps < kEvaluations ? 0 : (t.steps + kEvaluations - 1) / kEvaluations);
  // Training costs three times as much per sample as evaluation, so this is a twelfth of the run time.
  const int64_t batches = std::max<int64_t>(4, t.evaluate_every / (4 * std::ssize(s.data.validation)));
  derive<int64_t>(given, "train.evaluate_batches", t.evaluate_batches, -1, t.evaluate_every > 0 ? batches : 0);
}

// Derives sampling during training: requested by prompts, or by sample_every.
void derive_samples(Given& given) {
  Train& t = given.settings.train;
  const bool given_every = given.origin("train.sample_every").kind != Origin::Kind::standard;
  if (!t.prompts.empty() && !given_every)
    store(given, "train.sample_every", t.sample_every, t.evaluate_every > 0 ? t.evaluate_every : t.steps);
  if (t.prompts.empty() && t.sample_every > 0)
    store<std::vector<std::string>>(given, "train.prompts", t.prompts, {""}, "sample_every");
}

void derive_tasks(Given& given) {
  Settings& s = given.settings;
  if (given.origin("evaluate.tasks_every").kind != Origin::Kind::standard) return;
  if (s.evaluate.tasks.empty())
    return store<int64_t>(given, "evaluate.tasks_every", s.evaluate.tasks_every, 0, "evaluate.tasks");
  const bool by_steps = s.checkpoint.every > 0;
  store(given, "evaluate.tasks_every", s.evaluate.tasks_every, by_steps ? s.checkpoint.every : s.train.evaluate_every,
        by_steps ? "checkpoint.every" : "train.evaluate_every");
}

void check_tasks(const Given& given) {
  const Settings& s = given.settings;
  if (s.evaluate.tasks.empty()) return;
  if (objective(s.model) != Objective::next)
    throw base::UserError("config", "{}{} needs a model that predicts the next token, and the objective is \"{}\"",
                          place(given, {"evaluate.tasks"}), given.say("evaluate.tasks"), s.model.objective);
  if (s.evaluate.tasks_folder.empty())
    throw base::UserError("config", "{}evaluate.tasks needs evaluate.tasks_folder, the folder of their data",
                          place(given, {"evaluate.tasks"}));
}

void check_conversations(const Given& given) {
  const Settings& s = given.settings;
  if (!learns_conversations(s.data)) return;
  if (!s.data.reset_at_document && method(s.train) != Method::grpo)
    throw base::UserError("config", "{}{} would let conversations of one sample see each other; leave it out",
                          place(given, {"data.reset_at_document"}), given.say("data.reset_at_document"));
  if (objective(s.model) != Objective::next)
    throw base::UserError("config", "{}{} learns no conversations; the objective \"next\" does",
                          place(given, {"model.objective"}), given.say("model.objective"));
}

// Methods that need chats, and what of them.
void check_method(const Given& given) {
  const Settings& s = given.settings;
  const Method chosen = method(s.train);
  if (chosen == Method::likelihood) return;
  const std::string where = place(given, {"train.method"});
  if (objective(s.model) != Objective::next || !reads_tokens(given))
    throw base::UserError("config", "{}{} needs a model that continues texts: objective \"next\", and this is \"{}\"",
                          where, given.say("train.method"), s.model.objective);
  if (!s.data.train.empty() && !learns_conversations(s.data))
    throw base::UserError("config", "{}{} learns from a file NAME.jsonl, and data.train names \"{}\"", where,
                          given.say("train.method"), s.data.train[0].path);
  if (chosen == Method::dpo && positions(s.model) == Positions::learned)
    throw base::UserError("config",
                          "{}{} puts both answers into one sample, which needs positions relative to the answer: "
                          "model.positions \"rotary\", and this is \"learned\"",
                          where, given.say("train.method"));
  if (s.data.long_conversations == "cut")
    throw base::UserError("config", "{}{} cannot cut answers, whose end counts; \"drop\" or \"refuse\" can be set",
                          place(given, {"data.long_conversations"}), given.say("data.long_conversations"));
}

void check_rewards(const Given& given) {
  const Settings& s = given.settings;
  if (method(s.train) != Method::grpo) return;
  if (s.train.global_batch % s.grpo.group != 0)
    throw base::UserError("config", "{}{} must divide train.global_batch {}, which counts answers",
                          place(given, {"grpo.group", "train.global_batch"}), given.say("grpo.group"),
                          s.train.global_batch);
  if (s.data.reset_at_document)
    throw base::UserError("config", "{}{} does not go with train.method \"grpo\", whose samples are single answers",
                          place(given, {"data.reset_at_document"}), given.say("data.reset_at_document"));
  if (s.train.sample_every > 0)
    throw base::UserError("config", "{}{} does not go with train.method \"grpo\", which samples in every step",
                          place(given, {"train.sample_every", "train.prompts"}), given.say("train.sample_every"));
  if (reward(s.grpo) == Reward::pattern && s.grpo.pattern.empty())
    throw base::UserError("config", "{}grpo.pattern is missing, the regular expression of reward \"pattern\"",
                          place(given, {"grpo.reward"}));
  if (reward(s.grpo) == Reward::program && s.grpo.program.empty())
    throw base::UserError("config", "{}grpo.program is missing, the command of reward \"program\"",
                          place(given, {"grpo.reward"}));
}

void check_samples(const Given& given) {
  constexpr size_t kMostPrompts = 64;
  const Settings& s = given.settings;
  if (s.train.sample_every == 0) return;
  if (objective(s.model) != Objective::next)
    throw base::UserError("config", "{}{} needs a model that continues texts: objective \"next\", and this is \"{}\"",
                          place(given, {"train.sample_every", "train.prompts"}), given.say("train.sample_every"),
                          s.model.objective);
  if (s.train.prompts.size() > kMostPrompts)
    throw base::UserError("config", "{}train.prompts has {} texts, more than the maximum of {}",
                          place(given, {"train.prompts"}), s.train.prompts.size(), kMostPrompts);
}

// Moving averages stay in memory.
void check_optimizer(const Given& given) {
  const Settings& s = given.settings;
  if (s.train.ema_decay > 0 && offloaded(s.parallel).optimizer)
    throw base::UserError("config", "{}{}: validation reads averages, which {} would store in a file; leave one out",
                          place(given, {"train.ema_decay", "parallel.offload"}), given.say("train.ema_decay"),
                          given.say("parallel.offload"));
}

}  // namespace

bool learns_conversations(const Data& data) {
  return std::ranges::any_of(data.train, [](const DataSource& source) { return source.path.ends_with(".jsonl"); });
}

int64_t data_ranks(const Settings& settings) {
  return data_ranks(settings.parallel);
}

Given fill_derived(Given given, int64_t cores) {
  Settings& s = given.settings;
  derive_model(given);
  derive_lengths(given);
  derive_parallel(given, cores);
  derive_micro_batch(given);
  if (s.train.decay == "one_cycle" && s.train.min_learning_rate < 0)
    store(given, "train.min_learning_rate", s.train.min_learning_rate, s.train.learning_rate / 250'000,
          "a 250,000th of learning_rate");
  derive(given, "train.min_learning_rate", s.train.min_learning_rate, -1.0,
         s.train.decay == "step" ? 0.0 : s.train.learning_rate / 10);
  derive<int64_t>(given, "train.decay_steps", s.train.decay_steps, 0, s.train.steps);
  if (s.train.decay == "wsd")
    derive<int64_t>(given, "train.cooldown_steps", s.train.cooldown_steps, 0,
                    std::max<int64_t>(s.train.decay_steps / 5, 1));
  if (learns_conversations(s.data) && method(s.train) != Method::grpo)
    derive_ungiven(given, "data.reset_at_document", s.data.reset_at_document, true, "conversations are apart");
  if (s.lora.rank > 0) derive(given, "lora.alpha", s.lora.alpha, 0.0, 2.0 * static_cast<double>(s.lora.rank));
  derive_experts(given);
  derive_pace(given);
  derive_samples(given);
  derive_tasks(given);
  return given;
}

Resolved resolve(Given given, int64_t cores) {
  Resolved resolved{fill_derived(std::move(given), cores), {}};
  check_parallel(resolved);
  check_model(resolved);
  check_lengths(resolved);
  check_batch(resolved);
  check_gradient_dtype(resolved);
  check_experts(resolved);
  check_schedule(resolved);
  check_optimizer(resolved);
  check_conversations(resolved);
  check_method(resolved);
  check_rewards(resolved);
  check_samples(resolved);
  check_tasks(resolved);
  warn_of_idle_keys(resolved);
  warn_of_parallel(resolved, cores);
  return resolved;
}

Resolved load(const std::filesystem::path& path, const Catalog& catalog, std::span<const std::string> sets,
              int64_t cores) {
  return resolve(read_file(path, catalog, sets), cores);
}

void fill_from_tokenizer(Resolved& resolved, int64_t vocab, const TokenizerIds& ids) {
  derive<int64_t>(resolved, "model.vocab", resolved.settings.model.vocab, 0, vocab);
  if (objective(resolved.settings.model) != Objective::next) {
    Data& d = resolved.settings.data;
    derive<int64_t>(resolved, "data.mask_token", d.mask_token, -1, ids.mask);
    derive<int64_t>(resolved, "data.first_token", d.first_token, -1, ids.first);
    derive<int64_t>(resolved, "data.separator_token", d.separator_token, -1, ids.separator);
  }
  if (Data& d = resolved.settings.data; begins_samples(resolved.settings)) {
    derive<int64_t>(resolved, "data.first_token", d.first_token, -1, ids.first);
    if (d.first_token < 0)
      throw base::UserError("config",
                            "{}{} needs a token, and the tokenizer puts none before texts; data.first_token "
                            "names an id",
                            place(resolved, {"data.begin_samples"}), resolved.say("data.begin_samples"));
  }
  if (resolved.settings.model.vocab < vocab)
    throw base::UserError("config", "{}{} is less than the {} of the data's tokenizer; raise it, or leave it out",
                          place(resolved, {"model.vocab", "model.name"}), resolved.say("model.vocab"), vocab);
}

void fill_from_numbers(Resolved& resolved, int64_t features, int64_t outputs) {
  Model& m = resolved.settings.model;
  derive<int64_t>(resolved, "model.features", m.features, 0, features);
  derive<int64_t>(resolved, "model.outputs", m.outputs, 0, outputs);
  for (const auto& [key, has, data] :
       {std::tuple{"model.features", m.features, features}, std::tuple{"model.outputs", m.outputs, outputs}})
    if (has != data)
      throw base::UserError("config", "{}{}, but the data has {}", place(resolved, {key}), resolved.say(key), data);
}

void fill_chat_template(Resolved& resolved, std::string_view name) {
  derive<std::string>(resolved, "data.chat_template", resolved.settings.data.chat_template, "", std::string(name));
}

void fill_from_images(Resolved& resolved, const ImageSizes& sizes, int64_t outputs, bool numbers) {
  Model& m = resolved.settings.model;
  derive<int64_t>(resolved, "model.image_channels", m.image_channels, 0, sizes.channels);
  derive<int64_t>(resolved, "model.image_height", m.image_height, 0, sizes.height);
  derive<int64_t>(resolved, "model.image_width", m.image_width, 0, sizes.width);
  derive<int64_t>(resolved, "model.image_depth", m.image_depth, 0, sizes.depth);
  derive<std::string>(resolved, "model.image_dtype", m.image_dtype, "uint8", sizes.dtype);
  derive<int64_t>(resolved, "model.outputs", m.outputs, 0, outputs);
  for (const auto& [key, has, data] : {std::tuple{"model.image_channels", m.image_channels, sizes.channels},
                                       std::tuple{"model.image_depth", m.image_depth, sizes.depth},
                                       std::tuple{"model.image_height", m.image_height, sizes.height},
                                       std::tuple{"model.image_width", m.image_width, sizes.width}})
    if (has != data)
      throw base::UserError("config", "{}{}, but the data has {}", place(resolved, {key}), resolved.say(key), data);
  if (m.image_dtype != sizes.dtype)
    throw base::UserError("config", "{}{}, but the data has {}", place(resolved, {"model.image_dtype"}),
                          resolved.say("model.image_dtype"), sizes.dtype);
  check_normalization(resolved);
  if (numbers && m.outputs != outputs)
    throw base::UserError("config", "{}{}, but the data has {} for each image", place(resolved, {"model.outputs"}),
                          resolved.say("model.outputs"), outputs);
  if (m.outputs < outputs)
    throw base::UserError("config", "{}{} is less than the {} classes of the data; raise it, or leave it out",
                          place(resolved, {"model.outputs"}), resolved.say("model.outputs"), outputs);
}

std::vector<std::string> sizes_of_data(const Resolved& resolved) {
  const Model& m = resolved.settings.model;
  const Family& family = *resolved.catalog->family(m.family);
  std::vector<std::string> open;
  const auto add = [&](std::string_view key, int64_t size) {
    if (size == 0) open.emplace_back(key);
  };
  if (family.reads_tokens) {
    add("model.vocab", m.vocab);
  } else if (family.reads_images) {
    add("model.image_channels", m.image_channels);
    add("model.image_height", m.image_height);
    add("model.image_width", m.image_width);
    add("model.outputs", m.outputs);
  } else {
    add("model.features", m.features);
    add("model.outputs", m.outputs);
  }
  return open;
}

void require_data(const Resolved& resolved) {
  const Family& family = *resolved.catalog->family(resolved.settings.model.family);
  if (resolved.settings.data.train.empty())
    throw base::UserError("config", "data.train is missing; name {}",
                          family.reads_tokens   ? "the token file that `kintsugi prepare` wrote"
                          : family.reads_images ? "a file or folder of images"
                                                : "a CSV file of numbers");
}

}  // namespace kintsugi::config

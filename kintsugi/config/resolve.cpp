#include "kintsugi/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve_parallel.h"

namespace kintsugi::config {
namespace {

void derive_model(Given& given) {
  Model& m = given.settings.model;
  const bool llama = m.family == "llama";
  derive<int64_t>(given, "model.kv_heads", m.kv_heads, 0, m.heads);
  derive<int64_t>(given, "model.ffn", m.ffn, 0, llama ? (8 * m.embed + 95) / 96 * 32 : 4 * m.embed);
  derive_ungiven(given, "model.bias", m.bias, !llama);
  derive_ungiven(given, "model.tied", m.tied, !llama);
  derive<std::string>(given, "model.activation", m.activation, "", llama ? "silu" : "gelu_tanh");
}

void derive_lengths(Given& given) {
  Model& m = given.settings.model;
  Train& t = given.settings.train;
  const int sequence = key_index("train.sequence");
  if (given.origins[sequence].kind == Origin::Kind::standard && m.context > 0 && m.context < t.sequence) {
    t.sequence = m.context;
    given.origins[sequence] = {Origin::Kind::derived, "model.context"};
  }
  derive<int64_t>(given, "model.context", m.context, 0, t.sequence);
}

void check_heads(const Given& given) {
  const Model& m = given.settings.model;
  if (m.embed % m.heads != 0)
    throw base::UserError("config", "{}{} is not divisible by {}; nearest embed: {}; nearest heads: {}",
                          place(given, {"model.embed", "model.heads"}), given.say("model.embed"),
                          given.say("model.heads"), multiples_around(m.embed, m.heads),
                          divisors_around(m.embed, m.heads));
  if (m.heads % m.kv_heads != 0)
    throw base::UserError("config", "{}{} is not divisible by {}; nearest kv_heads: {}",
                          place(given, {"model.kv_heads", "model.heads"}), given.say("model.heads"),
                          given.say("model.kv_heads"), divisors_around(m.heads, m.kv_heads));
  if (m.family == "llama" && m.embed / m.heads % 2 != 0)
    throw base::UserError(
        "config", "{}{} over {} is {}, an odd width of a head, but rotary embedding turns pairs; nearest embed: {}",
        place(given, {"model.embed", "model.heads"}), given.say("model.embed"), given.say("model.heads"),
        m.embed / m.heads, multiples_around(m.embed, 2 * m.heads));
}

void check_lengths(const Given& given) {
  if (given.settings.train.sequence > given.settings.model.context)
    throw base::UserError("config", "{}{} is longer than {}; lower sequence or raise context",
                          place(given, {"train.sequence", "model.context"}), given.say("train.sequence"),
                          given.say("model.context"));
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
  const bool ends = t.decay == "cosine" || t.decay == "linear";
  if (t.warmup_steps > t.steps)
    given.warnings.push_back(fmt::format("{}{} is more than {}: the learning rate never reaches its maximum",
                                         place(given, {"train.warmup_steps", "train.steps"}),
                                         given.say("train.warmup_steps"), given.say("train.steps")));
  else if (ends && t.warmup_steps > t.decay_steps)
    throw base::UserError("config", "{}{} is more than {}: the decay would end before it begins",
                          place(given, {"train.decay_steps", "train.warmup_steps"}), given.say("train.warmup_steps"),
                          given.say("train.decay_steps"));
}

// Keys that have an effect only with certain values of another key.
void warn_of_idle_keys(Resolved& given) {
  const Settings& s = given.settings;
  const bool adamw = s.train.optimizer == "adamw";
  warn_if_idle(given, "model.rope_theta", s.model.family == "llama", "model.family");
  warn_if_idle(given, "train.betas", adamw, "train.optimizer");
  warn_if_idle(given, "train.epsilon", adamw, "train.optimizer");
  warn_if_idle(given, "train.momentum", s.train.optimizer == "sgd", "train.optimizer");
  warn_if_idle(given, "train.base_batch", s.train.scale_learning_rate != "none", "train.scale_learning_rate");
  warn_if_idle(given, "train.evaluate_every", !s.data.validation.empty(), "data.validation");
  warn_if_idle(given, "train.evaluate_batches", !s.data.validation.empty(), "data.validation");
}

}  // namespace

int64_t data_ranks(const Settings& settings) {
  return settings.parallel.data;
}

Given fill_derived(Given given, int64_t cores) {
  Settings& s = given.settings;
  derive_model(given);
  derive_lengths(given);
  derive_parallel(given, cores);
  derive_micro_batch(given);
  derive(given, "train.min_learning_rate", s.train.min_learning_rate, -1.0, s.train.learning_rate / 10);
  derive<int64_t>(given, "train.decay_steps", s.train.decay_steps, 0, s.train.steps);
  return given;
}

Resolved resolve(Given given, int64_t cores) {
  Resolved resolved{fill_derived(std::move(given), cores), {}};
  check_parallel(resolved);
  check_heads(resolved);
  check_lengths(resolved);
  check_batch(resolved);
  check_schedule(resolved);
  warn_of_idle_keys(resolved);
  warn_of_parallel(resolved, cores);
  return resolved;
}

Resolved load(const std::filesystem::path& path, std::span<const std::string> sets, int64_t cores) {
  return resolve(read_file(path, sets), cores);
}

void fill_from_tokenizer(Resolved& resolved, int64_t vocab) {
  derive<int64_t>(resolved, "model.vocab", resolved.settings.model.vocab, 0, vocab);
  if (resolved.settings.model.vocab < vocab)
    throw base::UserError("config", "{}{} is less than the {} of the data's tokenizer; raise it, or leave it out",
                          place(resolved, {"model.vocab", "model.name"}), resolved.say("model.vocab"), vocab);
}

void require_data(const Resolved& resolved) {
  if (resolved.settings.data.train.empty())
    throw base::UserError("config", "data.train is missing; name the token file that `kintsugi prepare` wrote");
}

}  // namespace kintsugi::config

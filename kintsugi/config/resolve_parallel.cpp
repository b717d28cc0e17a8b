#include "kintsugi/config/resolve_parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/axes.h"
#include "kintsugi/config/batch_warmup.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/context.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::config {
namespace {

constexpr int64_t kMostRanks = 1'000'000;

// The keys of the axes, appended to `names`.
std::vector<std::string> with_axes(std::vector<std::string> names) {
  for (const Axis& axis : axes()) names.push_back(axis.key());
  return names;
}

// "data 2 x tensor 1 x context 1", including optional axes such as pipe if present.
std::string factors(const Parallel& p) {
  std::string text;
  for (const Axis* axis : axes_of_product())
    if (!axis->optional || axis->size(p) > 1)
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis->name, axis->size(p));
  return text;
}

void check_ranks(const Given& given) {
  const Parallel& p = given.settings.parallel;
  const int64_t product = ranks_of(p);
  if (product > kMostRanks)
    throw base::UserError("config", "{}{} is {} ranks; at most {} are possible", place(given, with_axes({})),
                          factors(p), base::group_digits(product), base::group_digits(kMostRanks));
  const int64_t others = product / p.data;
  if (p.ranks != product)
    throw base::UserError("config", "{}{} is not {} = {}; leave ranks out{}", place(given, {"parallel.ranks"}),
                          given.say("parallel.ranks"), factors(p), product,
                          p.ranks % others == 0 ? fmt::format(", or set data = {}", p.ranks / others) : "");
}

// "data, context and tensor"
std::string in_words(const std::vector<std::string>& names) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

// Each axis once; optional ones may be omitted.
void check_mesh_order(const Given& given) {
  const std::vector<std::string> names = tensor::words(given.settings.parallel.mesh_order);
  std::vector<std::string> once, may;
  bool fits = true;
  size_t known = 0;
  for (const Axis* axis : axes_by_nearness()) {
    const auto count = static_cast<size_t>(std::ranges::count(names, axis->name));
    (axis->optional ? may : once).emplace_back(axis->name);
    fits = fits && (count == 1 || (count == 0 && axis->optional));
    known += count;
  }
  if (!fits || known != names.size())
    throw base::UserError("config", "{}{} must name each of {} once, outermost first, and may name {}",
                          place(given, {"parallel.mesh_order"}), given.say("parallel.mesh_order"), in_words(once),
                          in_words(may));
}

void check_units(const Given& given) {
  const Train& t = given.settings.train;
  const int64_t units = t.reproducible, data = data_ranks(given.settings.parallel);
  if (units == 0) return;
  if (given.settings.parallel.expert > 1)
    throw base::UserError("config", "{}{} is not possible with {}: experts add the tokens of several units together",
                          place(given, {"train.reproducible", "parallel.expert"}), given.say("train.reproducible"),
                          given.say("parallel.expert"));
  const std::string at = place(given, {"train.reproducible", "train.global_batch", "train.micro_batch"});
  const std::string say = given.say("train.reproducible");
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(units)));
  if (units != power)
    throw base::UserError("config", "{}{} is not a power of two; nearest: {}, {}", at, say, power, 2 * power);
  if (units % data != 0) {
    const bool fits = std::has_single_bit(static_cast<uint64_t>(data));
    throw base::UserError("config", "{}{} is not divisible by mesh axis \"data\" of size {}; {}", at, say, data,
                          fits ? fmt::format("nearest: {}", data) : "data must be a power of two too");
  }
  if (t.global_batch % units != 0)
    throw base::UserError("config", "{}{} is not divisible by {}; nearest global_batch: {}", at,
                          given.say("train.global_batch"), say, multiples_around(t.global_batch, units));
  if (t.micro_batch != t.global_batch / units)
    throw base::UserError("config", "{}{} is not one unit of {} / {}, which is {}; leave micro_batch out", at,
                          given.say("train.micro_batch"), given.say("train.global_batch"), say, t.global_batch / units);
}

// Checks that the samples of a step are divisible among the ranks that share them.
void check_samples_of_ranks(const Given& given) {
  const int64_t ranks = data_ranks(given.settings.parallel), batch = given.settings.train.global_batch;
  if (batch % ranks == 0) return;
  std::vector<std::string> keys = {"train.global_batch"}, names;
  for (const Axis& axis : axes()) {
    if (!axis.shares_samples) continue;
    keys.push_back(axis.key());
    if (axis.size(given.settings.parallel) > 1) names.push_back(fmt::format("\"{}\"", axis.name));
  }
  keys.push_back("parallel.ranks");
  throw base::UserError("config", "{}{} is not divisible by mesh ax{} {} of size {}; nearest: {}", place(given, keys),
                        given.say("train.global_batch"), names.size() == 1 ? "is" : "es", in_words(names), ranks,
                        multiples_around(batch, ranks));
}

// Checks the keys that axis sizes must divide.
void check_multiples(const Given& given) {
  for (const Axis& axis : axes())
    for (const std::string_view key : axis.divides) {
      const int64_t size = axis.size(given.settings.parallel);
      const auto value = std::get<int64_t>(keys()[static_cast<size_t>(key_index(key))].get(given.settings));
      if (value % size != 0)
        throw base::UserError("config", "{}{} is not divisible by mesh axis \"{}\" of size {}; nearest: {}",
                              place(given, {std::string(key), axis.key(), "parallel.ranks"}), given.say(key), axis.name,
                              size, multiples_around(value, size));
    }
}

// Groups of samples that share the statistics of batch norms are within one replica.
void check_norm_groups(const Given& given) {
  const Train& t = given.settings.train;
  const int64_t group = batch_norm_group(given.settings), micro_batch = t.micro_batch;
  if (group == 0 || micro_batch % group == 0) return;
  const int64_t ranks = data_ranks(given.settings.parallel), share = t.global_batch / ranks;
  if (share % group != 0)
    throw base::UserError(
        "config", "{}{} does not divide {} / {} data rank{}; nearest batch_norm_samples: {}; nearest global_batch: {}",
        place(given, {"model.batch_norm_samples", "train.global_batch"}), given.say("model.batch_norm_samples"),
        given.say("train.global_batch"), ranks, ranks == 1 ? "" : "s", divisors_around(share, group),
        multiples_around(t.global_batch, group * ranks));
  throw base::UserError("config", "{}{} does not divide {}; nearest batch_norm_samples: {}; nearest micro_batch: {}",
                        place(given, {"model.batch_norm_samples", "train.micro_batch"}),
                        given.say("model.batch_norm_samples"), given.say("train.micro_batch"),
                        divisors_around(micro_batch, group), multiples_around(micro_batch, group));
}

// The samples of steps within the warm-up of the batch are whole micro-batches too, and fewer than those of others.
void check_batch_warmup(const Given& given) {
  const Train& t = given.settings.train;
  const int64_t ranks = data_ranks(given.settings.parallel), pass = t.micro_batch * ranks;
  const std::string at = place(given, {"train.batch_warmup", "train.micro_batch", "train.global_batch"});
  const std::vector<BatchStage> stages = batch_stages(t);
  for (size_t i = 0; i < stages.size(); ++i) {
    const std::string say = fmt::format("train.batch_warmup: \"{}\"", t.batch_warmup[i]);
    if (stages[i].samples >= t.global_batch)
      throw base::UserError("config", "{}{} is not a batch below {}", at, say, given.say("train.global_batch"));
    if (stages[i].samples % pass != 0)
      throw base::UserError("config", "{}{}: {} samples are not divisible by {} x {} data rank{}; nearest: {}", at, say,
                            stages[i].samples, given.say("train.micro_batch"), ranks, ranks == 1 ? "" : "s",
                            multiples_around(stages[i].samples, pass));
  }
  const auto refuse = [&](bool is_so, std::string_view key, std::string_view why) {
    if (is_so && !stages.empty())
      throw base::UserError("config", "{}train.batch_warmup is not possible with {}: {}",
                            place(given, {"train.batch_warmup", std::string(key)}), given.say(key), why);
  };
  refuse(t.reproducible > 0, "train.reproducible", "its units are those of a whole batch");
  refuse(method(t) == Method::grpo, "train.method", "answers are sampled for whole batches");
}

}  // namespace

void derive_parallel(Given& given, int64_t cores) {
  Parallel& p = given.settings.parallel;
  const auto given_here = [&](std::string_view name) { return given.origin(name).given(); };
  if (p.ranks == 0 || !given_here("parallel.ranks")) {
    store(given, "parallel.ranks", p.ranks, ranks_of(p));
  } else if (std::ranges::none_of(axes(), [&](const Axis& axis) { return given_here(axis.key()); })) {
    store(given, "parallel.data", p.data, p.ranks, "parallel.ranks");
  }
  derive<std::string>(given, "parallel.context_balance", p.context_balance, "",
                      std::string(name_of(context_balance(p))));
  derive<int64_t>(given, "parallel.threads", p.threads, 0, std::max<int64_t>(1, cores / p.ranks));
}

void derive_micro_batch(Given& given) {
  Train& t = given.settings.train;
  const int64_t share = std::max<int64_t>(1, t.global_batch / data_ranks(given.settings.parallel));
  const int64_t group = batch_norm(given.settings.model) == BatchNorm::replica
                            ? std::max<int64_t>(1, given.settings.model.batch_norm_samples)
                            : 1;
  int64_t micro_batch = std::min<int64_t>(share, std::max<int64_t>(8 / group, 1) * group);
  const int64_t ranks = data_ranks(given.settings.parallel);
  const std::vector<BatchStage> stages = batch_stages(t);
  const auto divides = [&](const BatchStage& stage) { return stage.samples % (micro_batch * ranks) == 0; };
  while (micro_batch > 1 &&
         (share % micro_batch != 0 || micro_batch % group != 0 || !std::ranges::all_of(stages, divides)))
    --micro_batch;
  if (t.reproducible > 0) micro_batch = std::max<int64_t>(1, t.global_batch / t.reproducible);
  derive<int64_t>(given, "train.micro_batch", t.micro_batch, 0, micro_batch);
}

void check_parallel(const Given& given) {
  const Parallel& p = given.settings.parallel;
  check_ranks(given);
  check_mesh_order(given);
  if (!p.memory_per_rank.empty() && !memory_size(p.memory_per_rank))
    throw base::UserError("config",
                          "{}{} is not a size of memory; write a number and its unit (B, kB, MB, GB, TB, KiB, MiB, "
                          "GiB, TiB), as \"16 GiB\"",
                          place(given, {"parallel.memory_per_rank"}), given.say("parallel.memory_per_rank"));
  const Device on = device(p);
  if ((on == Device::cuda || on == Device::emulated) && given.settings.train.dtype == "fp64")
    throw base::UserError("config", "{}{} computes in fp32, bf16 or fp16, and {}; the processor computes in fp64",
                          place(given, {"parallel.device", "train.dtype"}), given.say("parallel.device"),
                          given.say("train.dtype"));
  for (const Axis& axis : axes())
    if (axis.check) axis.check(given);
}

void check_batch(const Given& given) {
  const Train& t = given.settings.train;
  const int64_t ranks = data_ranks(given.settings.parallel);
  check_samples_of_ranks(given);
  check_multiples(given);
  check_units(given);
  const int64_t share = t.global_batch / ranks;
  if (share % t.micro_batch != 0)
    throw base::UserError(
        "config", "{}{} is not divisible by {} x {} data rank{}; nearest global_batch: {}; nearest micro_batch: {}",
        place(given, {"train.micro_batch", "train.global_batch"}), given.say("train.global_batch"),
        given.say("train.micro_batch"), ranks, ranks == 1 ? "" : "s",
        multiples_around(t.global_batch, t.micro_batch * ranks), divisors_around(share, t.micro_batch));
  check_norm_groups(given);
  check_batch_warmup(given);
}

void warn_of_parallel(Resolved& given, int64_t cores) {
  const Parallel p = given.settings.parallel;
  const bool shards_context = p.shard_context && p.context > 1;
  const bool shards_data = (p.data > 1 && p.shard_group != 1) || p.expert > 1;
  Parallel not_given = p;
  not_given.context_balance.clear();
  for (const Axis& axis : axes())
    for (const std::string_view key : axis.keys) {
      // A saved configuration also contains the derived value.
      const bool derived = key == "parallel.context_balance" && context_balance(p) == context_balance(not_given);
      warn_if_idle(given, key, axis.size(p) > 1 || derived, axis.key());
    }
  warn_if_idle(given, "parallel.shard_group", p.zero > 0, "parallel.zero");
  warn_if_idle(given, "parallel.shard_context", p.zero > 0, "parallel.zero");
  if (p.zero > 0) warn_if_idle(given, "parallel.shard_context", p.context > 1, "parallel.context");
  warn_if_idle(given, "parallel.zero", shards_data || shards_context,
               p.data > 1 ? "parallel.shard_group" : "parallel.data");
  warn_if_idle(given, "parallel.recompute_every", p.recompute != "none", "parallel.recompute");
  warn_if_idle(given, "parallel.offload_folder", p.offload != "none", "parallel.offload");
  const bool on_card = device(p) == Device::cuda || device(p) == Device::automatic;
  warn_if_idle(given, "parallel.tf32", on_card, "parallel.device");
  if (on_card) warn_if_idle(given, "parallel.tf32", given.settings.train.dtype == "fp32", "train.dtype");
  warn_if_idle(given, "parallel.keep_logits", p.tensor > 1 || !p.rules.empty(), "parallel.tensor");
  for (const std::string_view name :
       {"parallel.keep_gathered", "parallel.rules", "parallel.mesh_order", "parallel.wire"})
    warn_if_idle(given, name, p.ranks > 1, "parallel.ranks");
  if (p.ranks > 1)
    warn_if_idle(given, "parallel.wire", given.settings.train.gradient_dtype == "fp32", "train.gradient_dtype");

  const int64_t threads = p.ranks * p.threads;
  if (p.ranks > 1 && threads > cores)
    given.machine_warnings.push_back(fmt::format(
        "{}{} ranks of {} thread{} each on {} core{}: they take turns, and a step takes at least {:.1f} times as long "
        "as on {} cores",
        place(given, with_axes({"parallel.ranks", "parallel.threads"})), p.ranks, p.threads, p.threads == 1 ? "" : "s",
        cores, cores == 1 ? "" : "s", static_cast<double>(threads) / static_cast<double>(cores), threads));
}

}  // namespace kintsugi::config

#include "kintsugi/config/resolve_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::config {
namespace {

constexpr int64_t kMostRanks = 1'000'000;

int64_t product(const Parallel& p) {
  return p.pipe * p.data * p.tensor * p.context;
}

// "data 2 x tensor 1 x context 1", with pipe where there is one.
std::string factors(const Parallel& p) {
  return fmt::format("{}data {} x tensor {} x context {}", p.pipe > 1 ? fmt::format("pipe {} x ", p.pipe) : "", p.data,
                     p.tensor, p.context);
}

void check_ranks(const Given& given) {
  const Parallel& p = given.settings.parallel;
  const int64_t others = p.pipe * p.tensor * p.context;
  if (product(p) > kMostRanks)
    throw base::UserError("config", "{}{} is {} ranks; at most {} are possible",
                          place(given, {"parallel.data", "parallel.tensor", "parallel.context", "parallel.pipe"}),
                          factors(p), base::group_digits(product(p)), base::group_digits(kMostRanks));
  if (p.ranks != product(p))
    throw base::UserError("config", "{}{} is not {} = {}; leave ranks out{}", place(given, {"parallel.ranks"}),
                          given.say("parallel.ranks"), factors(p), product(p),
                          p.ranks % others == 0 ? fmt::format(", or set data = {}", p.ranks / others) : "");
}

void check_mesh_order(const Given& given) {
  std::vector<std::string> names = tensor::words(given.settings.parallel.mesh_order);
  std::ranges::sort(names);
  if (std::ranges::count(names, "pipe") == 1) std::erase(names, "pipe");  // where it is left out, it is the outermost
  if (names != std::vector<std::string>{"context", "data", "tensor"})
    throw base::UserError("config",
                          "{}{} must name each of data, context and tensor once, outermost first, and may name pipe",
                          place(given, {"parallel.mesh_order"}), given.say("parallel.mesh_order"));
}

void check_units(const Given& given) {
  const Train& t = given.settings.train;
  const int64_t units = t.reproducible, data = given.settings.parallel.data;
  if (units == 0) return;
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

}  // namespace

void derive_parallel(Given& given, int64_t cores) {
  Parallel& p = given.settings.parallel;
  const auto given_here = [&](std::string_view name) { return given.origin(name).given(); };
  if (p.ranks == 0 || !given_here("parallel.ranks")) {
    store(given, "parallel.ranks", p.ranks, product(p));
  } else if (!given_here("parallel.data") && !given_here("parallel.tensor") && !given_here("parallel.context") &&
             !given_here("parallel.pipe")) {
    store(given, "parallel.data", p.data, p.ranks, "parallel.ranks");
  }
  derive<std::string>(given, "parallel.context_balance", p.context_balance, "",
                      p.context_method == "ulysses" ? "contiguous" : "zigzag");
  derive<int64_t>(given, "parallel.threads", p.threads, 0, std::max<int64_t>(1, cores / p.ranks));
}

void derive_micro_batch(Given& given) {
  Train& t = given.settings.train;
  const int64_t share = std::max<int64_t>(1, t.global_batch / given.settings.parallel.data);
  int64_t micro_batch = std::min<int64_t>(share, 8);
  while (share % micro_batch != 0) --micro_batch;
  if (t.reproducible > 0) micro_batch = std::max<int64_t>(1, t.global_batch / t.reproducible);
  derive<int64_t>(given, "train.micro_batch", t.micro_batch, 0, micro_batch);
}

// The list of layers is numbers, and there are layers enough; lower/stages checks the list against the model.
void check_stages(const Given& given) {
  const Parallel& p = given.settings.parallel;
  for (const std::string& word : tensor::words(p.stages))
    if (word.find_first_not_of("0123456789") != std::string::npos || word.size() > 9)
      throw base::UserError("config",
                            "{}{}: \"{}\" is no number of layers; write how many layers each chunk has: \"5 7\"",
                            place(given, {"parallel.stages"}), given.say("parallel.stages"), word);
  const int64_t parts = p.pipe * p.chunks, layers = given.settings.model.layers;
  if (p.pipe > 1 && parts > layers)
    throw base::UserError("config", "{}{}{} makes {} parts of {}; at most pipe = {}",
                          place(given, {"parallel.pipe", "parallel.chunks", "model.layers"}),
                          given.say("parallel.pipe"), p.chunks > 1 ? " with " + given.say("parallel.chunks") : "",
                          parts, given.say("model.layers"), std::max<int64_t>(1, layers / p.chunks));
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
  check_stages(given);
  if (p.shard_group > 0 && p.data % p.shard_group != 0)
    throw base::UserError("config", "{}{} does not divide mesh axis \"data\" of size {}; nearest: {}",
                          place(given, {"parallel.shard_group", "parallel.data"}), given.say("parallel.shard_group"),
                          p.data, divisors_around(p.data, p.shard_group));
}

void check_batch(const Given& given) {
  const Train& t = given.settings.train;
  const int64_t ranks = given.settings.parallel.data;
  if (t.global_batch % ranks != 0)
    throw base::UserError("config", "{}{} is not divisible by mesh axis \"data\" of size {}; nearest: {}",
                          place(given, {"train.global_batch", "parallel.data", "parallel.ranks"}),
                          given.say("train.global_batch"), ranks, multiples_around(t.global_batch, ranks));
  check_units(given);
  const int64_t share = t.global_batch / ranks;
  if (share % t.micro_batch != 0)
    throw base::UserError(
        "config", "{}{} is not divisible by {} x {} data rank{}; nearest global_batch: {}; nearest micro_batch: {}",
        place(given, {"train.micro_batch", "train.global_batch"}), given.say("train.global_batch"),
        given.say("train.micro_batch"), ranks, ranks == 1 ? "" : "s",
        multiples_around(t.global_batch, t.micro_batch * ranks), divisors_around(share, t.micro_batch));
}

void warn_of_parallel(Resolved& given, int64_t cores) {
  const Parallel p = given.settings.parallel;
  const bool shards_context = p.shard_context && p.context > 1;
  const bool shards_data = p.data > 1 && p.shard_group != 1;
  warn_if_idle(given, "parallel.sequence_parallel", p.tensor > 1, "parallel.tensor");
  warn_if_idle(given, "parallel.context_method", p.context > 1, "parallel.context");
  warn_if_idle(given, "parallel.context_balance", p.context > 1, "parallel.context");
  warn_if_idle(given, "parallel.shard_group", p.zero > 0, "parallel.zero");
  warn_if_idle(given, "parallel.shard_context", p.zero > 0, "parallel.zero");
  if (p.zero > 0) warn_if_idle(given, "parallel.shard_context", p.context > 1, "parallel.context");
  warn_if_idle(given, "parallel.zero", shards_data || shards_context,
               p.data > 1 ? "parallel.shard_group" : "parallel.data");
  for (const std::string_view name : {"parallel.schedule", "parallel.chunks", "parallel.stages"})
    warn_if_idle(given, name, p.pipe > 1, "parallel.pipe");
  warn_if_idle(given, "parallel.recompute_every", p.recompute != "none", "parallel.recompute");
  warn_if_idle(given, "parallel.offload_folder", p.offload != "none", "parallel.offload");
  warn_if_idle(given, "parallel.keep_logits", p.tensor > 1 || !p.rules.empty(), "parallel.tensor");
  for (const std::string_view name :
       {"parallel.keep_gathered", "parallel.rules", "parallel.mesh_order", "parallel.wire"})
    warn_if_idle(given, name, p.ranks > 1, "parallel.ranks");

  const int64_t threads = p.ranks * p.threads;
  if (p.ranks > 1 && threads > cores)
    given.warnings.push_back(fmt::format(
        "{}{} ranks of {} thread{} each on {} core{}: they take turns, and a step takes at least {:.1f} times as long "
        "as on {} cores",
        place(given, {"parallel.ranks", "parallel.threads", "parallel.data", "parallel.tensor", "parallel.context",
                      "parallel.pipe"}),
        p.ranks, p.threads, p.threads == 1 ? "" : "s", cores, cores == 1 ? "" : "s",
        static_cast<double>(threads) / static_cast<double>(cores), threads));
}

}  // namespace kintsugi::config

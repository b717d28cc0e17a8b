#include "kintsugi/compile/strategy_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/plan/strategies.h"
#include "kintsugi/program/communication.h"

namespace kintsugi::compile {
namespace {

// The micro_batch of a rank with which a pass over all ranks is nearest to `all` samples.
int64_t samples_of_rank(const config::Settings& s, int64_t data, int64_t all) {
  if (s.train.reproducible > 0) return s.train.micro_batch;
  const bool grouped = config::batch_norm(s.model) == config::BatchNorm::replica;
  const int64_t share = s.train.global_batch / data,
                group = grouped ? std::max<int64_t>(s.model.batch_norm_samples, 1) : 1;
  int64_t n = std::clamp<int64_t>(std::max(all / data, group), 1, share);
  while (n > 1 && (share % n != 0 || n % group != 0)) --n;
  return n;
}

void require_divisible(const char* key, int64_t n, int64_t data) {
  if (n % data != 0)
    throw base::UserError("plan", "{} {} is not divisible by mesh axis \"data\" of size {}", key, n, data);
}

// `samples`: per pass over all ranks.
StrategyCosts measure(std::string_view name, config::Settings s, const config::Parallel& parallel, int64_t samples,
                      const plan::ModelDims& model) {
  s.parallel = parallel;
  const plan::Plan plan = plan_of(s);
  StrategyCosts costs = {.name = std::string(name), .splits = splits_of(plan, &model)};
  try {
    require_divisible("global_batch", s.train.global_batch, config::data_ranks(parallel));
    require_divisible("reproducible", s.train.reproducible, config::data_ranks(parallel));
    s.train.micro_batch = samples_of_rank(s, config::data_ranks(parallel), samples);
    costs.passes = micro_batches(s);
    // The maximum of each number over stages.
    for (const program::Program& p : compile({.settings = s, .kernels = *kernels_of(s)})) {
      int64_t calls = 0;
      double sent = 0;
      for (const program::Traffic& t : program::traffic(p, program::Step::train)) {
        calls += t.calls;
        sent += t.total();
      }
      costs.calls = std::max(costs.calls, calls);
      costs.sent = std::max(costs.sent, sent);
      if (p.bytes() > costs.bytes()) {
        costs.states = p.state_bytes;
        costs.arena = p.arena_bytes;
      }
      costs.flops = std::max(costs.flops, p.flops(program::Step::train));
    }
  } catch (const base::UserError& e) {
    costs.refused = e.what();
  }
  return costs;
}

std::string bytes(double x) {
  return base::format_bytes(static_cast<uint64_t>(x + 0.5));
}

}  // namespace

std::vector<StrategyCosts> strategy_costs(const config::Settings& s, int64_t ranks) {
  const int64_t samples = s.train.reproducible > 0 ? s.train.micro_batch : samples_of_pass(s);
  const plan::ModelDims model = dims_of(models::build_training(s));
  std::vector<StrategyCosts> list;
  for (const plan::Strategy& strategy : plan::strategies()) {
    config::Parallel p = plan::parallel_of(strategy, ranks);
    p.threads = s.parallel.threads, p.device = s.parallel.device;
    list.push_back(measure(strategy.name, s, p, samples, model));
  }
  if (s.parallel.ranks == ranks && ranks > 1) list.push_back(measure("this plan", s, s.parallel, samples, model));
  return list;
}

std::string print(const std::vector<StrategyCosts>& list, int64_t ranks) {
  constexpr size_t kRefused = 76;
  size_t name = 8, splits = 13;
  for (const StrategyCosts& s : list) {
    name = std::max(name, s.name.size());
    splits = std::max(splits, s.splits.size());
  }
  const StrategyCosts& one = list.front();
  std::string text = fmt::format("strategies for {}: what each rank sends in a step, holds, and computes\n",
                                 base::counted(ranks, "rank"));
  const auto row = [&](auto&&... cells) {
    text += fmt::format("  {:{}}  {:>5}  {:>8} {:>8} {:>8} {:>8}  {:>5}  {:>6}\n", cells...);
  };
  row("strategy", name, "calls", "sent", "states", "arena", "memory", "saves", "work");
  for (const StrategyCosts& s : list) {
    if (!s.refused.empty()) continue;
    const double saved = 1 - static_cast<double>(s.bytes()) / static_cast<double>(one.bytes());
    row(s.name, name, s.calls, bytes(s.sent), bytes(static_cast<double>(s.states)), bytes(static_cast<double>(s.arena)),
        bytes(static_cast<double>(s.bytes())), fmt::format("{:.0f}%", 100 * saved),
        fmt::format("{:.1f}%", 100 * s.flops / one.flops));
  }
  text += fmt::format("  {:{}}  {:{}}  {}\n", "", name, "what is split", splits, "passes");
  for (const StrategyCosts& s : list) {
    if (s.refused.empty())
      text += fmt::format("  {:{}}  {:{}}  {:>6}\n", s.name, name, s.splits, splits, s.passes);
    else
      text += fmt::format("  {:{}}  {}\n    {}\n", s.name, name, s.splits, base::without_middle(s.refused, kRefused));
  }
  return text;
}

}  // namespace kintsugi::compile

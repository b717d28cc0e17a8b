#include "kintsugi/train/strategies.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/program/communication.h"
#include "kintsugi/train/build_program.h"

namespace kintsugi::train {
namespace {

// "batch, kv_heads in attention; flat of optimizer, gradient"
std::string splits_of(const plan::Plan& plan) {
  std::vector<std::string> known;
  std::string dims = plan.stages() > 1 ? "layer" : "", flat;
  for (const plan::Rule& r : plan.rules) {
    if (plan.mesh.count(plan.mesh.expand(r.axes)) == 1) continue;
    if (r.dim == "flat" && !r.family.empty()) {
      flat += (flat.empty() ? "flat of " : ", ") + r.family;
      continue;
    }
    const std::string text = r.family.empty() ? r.dim : r.dim + " in " + r.family;
    if (std::find(known.begin(), known.end(), text) != known.end()) continue;
    known.push_back(text);
    dims += (dims.empty() ? "" : ", ") + text;
  }
  if (flat.empty()) return dims.empty() ? "nothing" : dims;
  return dims.empty() ? flat : dims + "; " + flat;
}

// The samples of a pass of one rank that come nearest to `all` on all of them.
int64_t samples_of_pass(const config::Train& t, int64_t data, int64_t all) {
  if (t.reproducible > 0) return t.micro_batch;
  const int64_t share = t.global_batch / data;
  int64_t n = std::clamp<int64_t>(all / data, 1, share);
  while (share % n != 0) --n;
  return n;
}

Strategy measure(const std::string& name, config::Settings s, const config::Parallel& parallel, int64_t samples) {
  Strategy strategy = {.name = name, .splits = {}, .refused = {}};
  s.parallel = parallel;
  const int64_t data = parallel.data;
  const plan::Plan plan = plan_of(s);
  strategy.splits = splits_of(plan);
  try {
    if (s.train.global_batch % data != 0)
      throw base::UserError("plan", "global_batch {} is not divisible by mesh axis \"data\" of size {}",
                            s.train.global_batch, data);
    if (s.train.reproducible % data != 0)
      throw base::UserError("plan", "reproducible {} is not divisible by mesh axis \"data\" of size {}",
                            s.train.reproducible, data);
    s.train.micro_batch = samples_of_pass(s.train, data, samples);
    strategy.passes = micro_batches(s);
    // Of stages, the one that has most of each.
    for (const program::Program& p : build_programs(s, *kernels_of(s))) {
      int64_t calls = 0;
      double sent = 0;
      for (const program::Traffic& t : program::traffic(p, "train")) {
        calls += t.calls;
        sent += t.total();
      }
      strategy.calls = std::max(strategy.calls, calls);
      strategy.sent = std::max(strategy.sent, sent);
      if (p.bytes() > strategy.bytes()) {
        strategy.states = p.state_bytes;
        strategy.arena = p.arena_bytes;
      }
      strategy.flops = std::max(strategy.flops, p.flops("train"));
    }
  } catch (const base::UserError& e) {
    strategy.refused = e.what();
  }
  return strategy;
}

std::string bytes(double x) {
  return base::format_bytes(static_cast<uint64_t>(x + 0.5));
}

}  // namespace

std::vector<Strategy> strategies(const config::Settings& s, int64_t ranks) {
  using config::Parallel;
  const int64_t samples = s.train.micro_batch * (s.train.reproducible > 0 ? 1 : s.parallel.data);
  const int64_t threads = s.parallel.threads;
  std::vector<Strategy> list;
  const auto add = [&](const char* name, Parallel p) {
    p.ranks = p.pipe * p.data * p.tensor * p.context;
    p.threads = threads;
    list.push_back(measure(name, s, p, samples));
  };
  add("one rank", {});
  add("data", {.data = ranks});
  add("zero 1", {.data = ranks, .zero = 1});
  add("zero 2", {.data = ranks, .zero = 2});
  add("zero 3", {.data = ranks, .zero = 3});
  add("tensor", {.tensor = ranks});
  add("tensor, sequence", {.tensor = ranks, .sequence_parallel = true});
  for (const char* method : {"gathered", "ring", "ulysses"})
    add(fmt::format("context, {}", method).c_str(), {.context = ranks, .context_method = method});
  add("pipeline", {.pipe = ranks});
  if (s.parallel.ranks == ranks && ranks > 1) list.push_back(measure("this plan", s, s.parallel, samples));
  return list;
}

std::string print(const std::vector<Strategy>& list, int64_t ranks) {
  size_t name = 8, splits = 13;
  for (const Strategy& s : list) {
    name = std::max(name, s.name.size());
    splits = std::max(splits, s.splits.size());
  }
  const Strategy& one = list.front();
  std::string text =
      fmt::format("strategies for {} ranks: what each rank sends in a step, holds, and computes\n", ranks);
  const auto row = [&](auto&&... cells) {
    std::string line = fmt::format("  {:{}}  {:{}}  {:>6}  {:>6}  {:>8}  {:>8}  {:>8}  {:>8}  {:>6}  {:>6}", cells...);
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  row("strategy", name, "what is split", splits, "passes", "calls", "sent", "states", "arena", "memory", "saves",
      "work");
  for (const Strategy& s : list) {
    if (!s.refused.empty()) {
      text += fmt::format("  {:{}}  {:{}}  {}\n", s.name, name, s.splits, splits, s.refused);
      continue;
    }
    const double saved = 1 - static_cast<double>(s.bytes()) / static_cast<double>(one.bytes());
    row(s.name, name, s.splits, splits, s.passes, s.calls, bytes(s.sent), bytes(static_cast<double>(s.states)),
        bytes(static_cast<double>(s.arena)), bytes(static_cast<double>(s.bytes())), fmt::format("{:.0f}%", 100 * saved),
        fmt::format("{:.1f}%", 100 * s.flops / one.flops));
  }
  return text;
}

}  // namespace kintsugi::train

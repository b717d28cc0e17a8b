#include "kintsugi/compile/fit.h"

#include <algorithm>
#include <chrono>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/program/memory_table.h"

namespace kintsugi::compile {

using config::Settings;
using program::Program;

namespace {

bool needs_less(const Program& a, const Program& b) {
  return a.bytes() < b.bytes();
}

int64_t most_of(const std::vector<Program>& stages) {
  return std::max_element(stages.begin(), stages.end(), needs_less)->bytes();
}

// Memory of the rank that needs the most; nothing if the model does not support these settings.
std::optional<int64_t> bytes_of(const Settings& s) {
  try {
    return most_of(compile({.settings = s, .kernels = *kernels_of(s)}));
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// Time budget for trying changes, each assumed to take as long as the longest before it.
class Budget {
 public:
  explicit Budget(double seconds) : seconds_(seconds) {}

  // Ends timing of the last change, and returns whether another may be tried.
  bool allows() {
    const double now = elapsed();
    longest_ = std::max(longest_, now - last_);
    last_ = now;
    const bool enough = now + longest_ <= seconds_;
    if (!enough) ++refused_;
    return enough;
  }
  int64_t refused() const { return refused_; }

 private:
  using Clock = std::chrono::steady_clock;

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  double seconds_, last_ = 0, longest_ = 0;
  int64_t refused_ = 0;
  Clock::time_point begin_ = Clock::now();
};

// Each change that suffices alone.
std::vector<Saving> fitting_alone(const Settings& settings, int64_t bytes, const Machine& machine, const Trying& trying,
                                  Budget& budget) {
  std::vector<Saving> fitting;
  int64_t tried = 0;
  for (const plan::Change change : plan::changes()) {
    if (trying) trying(tried++, std::ssize(plan::changes()));
    const plan::Sets sets = change(settings);
    if (sets.empty() || !budget.allows()) continue;
    const Settings changed = plan::with(settings, sets);
    if (const auto needs = bytes_of(changed); needs && *needs <= memory_limit(changed, machine)->bytes)
      fitting.push_back({sets, bytes - *needs});
  }
  return fitting;
}

// Combines changes that each save something until they suffice; nothing if all together do not.
std::optional<Saving> fitting_together(const Settings& settings, int64_t bytes, const Machine& machine,
                                       const Trying& trying, Budget& budget) {
  Settings all = settings;
  plan::Sets sets;
  int64_t left = bytes;
  int64_t tried = 0;
  for (const plan::Change change : plan::changes()) {
    if (trying) trying(tried++, std::ssize(plan::changes()));
    const plan::Sets more = change(all);
    if (more.empty() || !budget.allows()) continue;
    const Settings changed = plan::with(all, more);
    const auto needs = bytes_of(changed);
    if (!needs || *needs >= left) continue;
    all = changed;
    left = *needs;
    plan::append(sets, more, all);
    if (left <= memory_limit(all, machine)->bytes) return Saving{sets, bytes - left};
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, int64_t>> largest_parts(const Program& p) {
  const program::MemoryTable t = program::memory_table(p);
  std::vector<std::pair<std::string, int64_t>> parts = {{"weights", t.weights},
                                                        {"gradients", t.gradients + t.live_gradients},
                                                        {"optimizer", t.optimizer},
                                                        {"activations", t.activations},
                                                        {"communication", t.communication},
                                                        {"workspace", t.workspace}};
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  parts.resize(3);
  return parts;
}

}  // namespace

std::optional<MemoryLimit> memory_limit(const Settings& s, const Machine& machine) {
  using Source = MemoryLimit::Source;
  if (!s.parallel.memory_per_rank.empty()) {
    const auto bytes = config::memory_size(s.parallel.memory_per_rank);
    base::require(bytes.has_value(), "memory", "\"{}\" was not checked", s.parallel.memory_per_rank);
    return MemoryLimit{.bytes = *bytes, .source = Source::memory_per_rank};
  }
  if (machine.device > 0) {
    const int64_t ranks = machine.processes > 0 ? 1 : s.parallel.ranks;
    return MemoryLimit{.bytes = machine.device_free / ranks,
                       .source = Source::device,
                       .shared = machine.device_free,
                       .ranks = ranks,
                       .of = machine.device};
  }
  if (device_of(s) == config::Device::cuda) return std::nullopt;  // a device of another machine
  const auto& [of_machine, of_group] = machine.memory;
  const bool grouped = of_group > 0 && (of_machine == 0 || of_group < of_machine);
  const int64_t shared = grouped ? of_group : of_machine;
  if (shared == 0) return std::nullopt;
  const int64_t ranks = machine.processes > 0 ? machine.processes : s.parallel.ranks;
  return MemoryLimit{.bytes = shared / ranks,
                     .source = grouped ? Source::control_group : Source::machine,
                     .shared = shared,
                     .ranks = ranks};
}

std::optional<Excess> excess(const Settings& s, const std::vector<Program>& stages, const Machine& machine, int stage,
                             const Trying& trying, double seconds) {
  const std::optional<MemoryLimit> limit = memory_limit(s, machine);
  if (!limit) return std::nullopt;
  if (stage < 0) stage = static_cast<int>(std::max_element(stages.begin(), stages.end(), needs_less) - stages.begin());
  const Program& p = stages[static_cast<size_t>(stage)];
  if (p.bytes() <= limit->bytes) return std::nullopt;
  Excess e = {.stage = stage,
              .stages = static_cast<int>(stages.size()),
              .bytes = p.bytes(),
              .limit = *limit,
              .largest = largest_parts(p)};
  while (p.mesh.stage_of(e.rank) != stage) ++e.rank;
  const int64_t most = most_of(stages);
  Budget budget(seconds);
  e.fitting = fitting_alone(s, most, machine, trying, budget);
  if (e.fitting.empty()) e.together = fitting_together(s, most, machine, trying, budget);
  e.not_tried = budget.refused();
  return e;
}

}  // namespace kintsugi::compile

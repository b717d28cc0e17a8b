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

// Tries changes until time runs out, which ends a compilation after its current pass.
class Trials {
 public:
  Trials(const Machine& machine, const Search& search) : machine_(machine), search_(search) {
    if (!search_.now) {
      search_.now = [began = std::chrono::steady_clock::now()] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      };
    }
    end_ = search_.now() + search_.seconds;
  }

  // Each change that suffices alone.
  std::vector<Saving> alone(const Settings& settings, int64_t bytes) {
    std::vector<Saving> fitting;
    int64_t tried = 0;
    for (const plan::Change change : plan::changes()) {
      if (search_.trying) search_.trying(tried++, std::ssize(plan::changes()));
      const plan::Sets sets = change(settings);
      if (sets.empty()) continue;
      const Settings changed = plan::with(settings, sets);
      if (const auto needs = bytes_of(changed); needs && *needs <= memory_limit(changed, machine_)->bytes)
        fitting.push_back({sets, bytes - *needs});
    }
    return fitting;
  }

  // Combines changes that each save something until they suffice; nothing if all together do not.
  std::optional<Saving> together(const Settings& settings, int64_t bytes) {
    Settings all = settings;
    plan::Sets sets;
    int64_t left = bytes;
    int64_t tried = 0;
    for (const plan::Change change : plan::changes()) {
      if (search_.trying) search_.trying(tried++, std::ssize(plan::changes()));
      const plan::Sets more = change(all);
      if (more.empty()) continue;
      const Settings changed = plan::with(all, more);
      const auto needs = bytes_of(changed);
      if (!needs || *needs >= left) continue;
      all = changed;
      left = *needs;
      plan::append(sets, more, all);
      if (left <= memory_limit(all, machine_)->bytes) return Saving{sets, bytes - left};
    }
    return std::nullopt;
  }

  int64_t not_tried() const { return not_tried_; }

 private:
  struct OutOfTime {};

  // Memory of the rank that needs the most; nothing if the model does not support these settings, or if time ran out.
  std::optional<int64_t> bytes_of(const Settings& s) {
    const auto check_time = [&] {
      if (not_tried_ > 0 || search_.now() >= end_) throw OutOfTime{};
    };
    try {
      check_time();
      const auto kernels = kernels_of(s);
      return most_of(compile(
          {.settings = s, .kernels = *kernels, .dump = [&](std::string_view, const Program&) { check_time(); }}));
    } catch (const base::UserError&) {
      return std::nullopt;
    } catch (const OutOfTime&) {
      ++not_tried_;
      return std::nullopt;
    }
  }

  const Machine& machine_;
  Search search_;
  double end_ = 0;
  int64_t not_tried_ = 0;
};

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
                             const Search& search) {
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
  Trials trials(machine, search);
  e.fitting = trials.alone(s, most);
  if (e.fitting.empty() && trials.not_tried() == 0) e.together = trials.together(s, most);
  e.not_tried = trials.not_tried();
  return e;
}

}  // namespace kintsugi::compile

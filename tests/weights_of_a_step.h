// The weights of a small graph before and after one step on all of its ranks, as threads.
#pragma once

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::tests {

using States = std::map<std::string, std::vector<double>>;

// Weights are fp32. `fill` sets the inputs of a call.
template <typename F>
std::pair<States, States> weights_of_a_step(const program::Program& p, const kernels::KernelSet& kernels, F&& fill) {
  const auto worlds = comm::thread_worlds(static_cast<int>(p.mesh.ranks()));
  std::pair<States, States> found;
  std::mutex one_at_a_time;
  comm::run_ranks(worlds, [&](comm::World& world) {
    base::ThreadTeam team(1);
    run::Executor executor(p, kernels, team, &world);
    executor.initialize(7);
    const auto look = [&](States& states) {
      const std::lock_guard lock(one_at_a_time);
      for (const program::StateInfo& s : p.states) {
        if (s.kind != program::StateKind::weight) continue;
        std::vector<double>& whole = states[s.name];
        whole.resize(static_cast<size_t>(s.whole.shape.elements()), NAN);
        run::look_at_runs(executor, s, [&](const program::Run& run, const std::byte* data) {
          for (int64_t i = 0; i < run.count; ++i)
            whole[static_cast<size_t>(run.whole + i)] = reinterpret_cast<const float*>(data)[i];
        });
      }
    };
    look(found.first);
    kernels::Numbers numbers = {.learning_rate = 0.1};
    executor.run(program::Step::train, numbers, fill);
    look(found.second);
  });
  return found;
}

}  // namespace kintsugi::tests

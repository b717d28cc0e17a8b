// Where the time of a training step goes: seconds, FLOP/s and bytes per second by kind of operation and phase.
//
//   step_profile run.toml [--set section.key=value ...]
//
// Inputs are zeros: times do not depend on them. [data] is not needed where model.vocab is given.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "app/program_of.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/build/programs.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/run/executor.h"

namespace {

using namespace kintsugi;
using Clock = std::chrono::steady_clock;

struct Total {
  double seconds = 0, flops = 0, bytes = 0;
  int calls = 0;
};

void profile(int argc, char** argv) {
  std::vector<std::string> sets;
  for (int i = 2; i < argc; ++i)
    if (std::string(argv[i]) != "--set") sets.emplace_back(argv[i]);
  config::Resolved resolved = config::load(argv[1], models::catalog(), sets, base::usable_cores());
  app::fill_vocab(resolved);
  const config::Settings& s = resolved.settings;
  const auto kernels = build::kernels_to_run(s);
  base::ThreadTeam team(static_cast<int>(s.parallel.threads));
  run::Executor executor(build::build_program(s, *kernels), *kernels, team);
  executor.initialize(s.train.seed);
  for (int round = 0; round < 3; ++round) {
    std::map<std::string, Total> totals;
    const auto start = Clock::now();
    auto last = start;
    executor.watch = [&](const run::Executor::Watched& watched) {
      const program::Instruction& i = watched.instruction;
      const auto now = Clock::now();
      Total& t = totals[fmt::format("{} {}", name_of(i.phase), name_of(i))];
      t.seconds += std::chrono::duration<double>(now - last).count();
      t.flops += i.cost.flops;
      t.bytes += i.cost.memory_bytes;
      ++t.calls;
      last = Clock::now();
    };
    kernels::Numbers numbers = {.seed = 1, .step = round, .learning_rate = 1e-4};
    executor.run(program::Step::train, numbers, [](const run::Executor::Inputs&) {});
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fmt::print("step {}: {:.3f} s, {:.1f} tokens/s, {:.1f} GFLOP/s\n", round, seconds,
               static_cast<double>(s.train.global_batch * s.train.sequence) / seconds,
               executor.program().flops(program::Step::train) / seconds / 1e9);
    if (round < 2) continue;
    std::vector<std::pair<std::string, Total>> rows(totals.begin(), totals.end());
    std::sort(rows.begin(), rows.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    for (const auto& [name, t] : rows)
      fmt::print("{:32} {:5} calls {:9.4f} s {:5.1f}% {:8.1f} GFLOP/s {:7.1f} GB/s\n", name, t.calls, t.seconds,
                 100 * t.seconds / seconds, t.flops / t.seconds / 1e9, t.bytes / t.seconds / 1e9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: step_profile run.toml [--set section.key=value ...]\n");
    return 1;
  }
  try {
    profile(argc, argv);
  } catch (const base::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

#include "kintsugi/calibrate/measure_kernels.h"

#include <algorithm>
#include <barrier>
#include <filesystem>
#include <mutex>

#include "kintsugi/base/bind.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/machine_memory.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/calibrate/silent_world.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/evaluate/make_executor.h"
#include "kintsugi/profile/recorder.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/train/batches.h"
#include "kintsugi/train/random_samples.h"

namespace kintsugi::calibrate {

using program::Instruction;
using program::Program;

namespace {

double median(std::vector<double>& x) {
  const auto middle = x.begin() + std::ssize(x) / 2;
  std::ranges::nth_element(x, middle);
  return *middle;
}

// The instructions of a stage's step and their times on its ranks.
struct StageTimes {
  std::vector<const Instruction*> instructions;
  std::vector<std::vector<double>> seconds;  // by instruction
};

// Ranks as threads of this process, each with its own program.
class Ranks {
 public:
  explicit Ranks(const KernelOptions& options)
      : o_(options), ranks_(static_cast<int>(options.stages[0].mesh.ranks())), together_(ranks_) {
    for (const Program& p : o_.stages) {
      StageTimes& stage = stages_.emplace_back();
      program::for_each_instruction(p, p.list(program::Step::train), [&](const auto&, int64_t, const Instruction& i) {
        stage.instructions.push_back(&i);
      });
      stage.seconds.resize(stage.instructions.size());
    }
  }

  std::vector<simulate::MeasuredKernel> run() {
    std::vector<std::unique_ptr<comm::World>> worlds;
    for (int rank = 0; rank < ranks_; ++rank) worlds.push_back(silent_world(rank, ranks_));
    comm::run_ranks(worlds, [&](comm::World& world) {
      const Leaves leaves(together_);
      steps(world);
    });
    return kernels();
  }

 private:
  // When a rank ends, even by an error, releases those waiting for it.
  struct Leaves {
    explicit Leaves(std::barrier<>& together) : barrier(together) {}
    ~Leaves() { barrier.arrive_and_drop(); }
    std::barrier<>& barrier;
  };

  void bind(base::ThreadTeam& team, int rank) const {
    if (!o_.settings.parallel.bind || ranks_ * team.size() > base::usable_cores()) return;
    const std::vector<int> cores = base::cores_of_process();
    team.run([&](int t) { base::bind_thread(cores[static_cast<size_t>(rank * team.size() + t)]); });
  }

  void steps(comm::World& world) {
    const int rank = world.rank();
    const config::Settings& s = o_.settings;
    base::ThreadTeam team(static_cast<int>(s.parallel.threads));
    bind(team, rank);
    const auto kernels = compile::kernels_to_run(s);
    const std::string& folder = s.parallel.offload_folder;
    const auto made = evaluate::make_executor(
        compile::program_of_rank(o_.stages, rank), *kernels, team,
        {.world = &world,
         .offload_folder = folder.empty() ? base::temporary_folder() : std::filesystem::path(folder),
         .time_limit = comm::time_limit(s.parallel.timeout_seconds)});
    run::Executor& executor = *made;
    executor.initialize(s.train.seed);
    const samples::Share share = train::share_of(executor, s);
    samples::BatchMemory batch(share.micro_batch, train::parts_of(s));
    train::RandomSamples(s).fill(share.first_sample(0, 0), batch.view());
    profile::Recorder recorder(executor.program(), program::Step::train);
    executor.recorder = &recorder;
    for (int64_t step = 0; step < o_.warm_up + o_.steps; ++step) {
      if (rank == 0 && o_.progress) o_.progress(step, o_.warm_up + o_.steps);
      kernels::Numbers numbers = {.seed = s.train.seed,
                                  .step = step,
                                  .batch_rows = compile::samples_of_pass(s),
                                  .learning_rate = s.train.learning_rate};
      together_.arrive_and_wait();
      executor.run(program::Step::train, numbers,
                   [&](const run::Executor::Inputs& to) { evaluate::set_inputs(to, batch.view(), share.place(0)); });
      if (step >= o_.warm_up) add(executor.program().stage, recorder.times());
    }
  }

  void add(int stage, const profile::StepTimes& times) {
    const std::scoped_lock lock(mutex_);
    StageTimes& to = stages_[static_cast<size_t>(stage)];
    for (size_t n = 0; n < to.seconds.size(); ++n)
      to.seconds[n].push_back(1e-9 * static_cast<double>(times.instructions[n].end - times.instructions[n].begin));
  }

  std::vector<simulate::MeasuredKernel> kernels() {
    struct Sum {
      double seconds = 0, calls = 0;
    };
    simulate::Measured keys;  // seconds: the index in sums
    std::vector<Sum> sums;
    for (size_t s = 0; s < stages_.size(); ++s)
      for (size_t n = 0; n < stages_[s].instructions.size(); ++n) {
        const Instruction& i = *stages_[s].instructions[n];
        if (i.kind != program::Kind::compute) continue;
        const simulate::KernelKey key = simulate::key_of(o_.stages[s], i);
        const simulate::MeasuredKernel* found = keys.find(key);
        if (!found) {
          keys.kernels.push_back({key, static_cast<double>(sums.size())});
          found = &keys.kernels.back();
          sums.emplace_back();
        }
        Sum& sum = sums[static_cast<size_t>(found->seconds)];
        sum.seconds += median(stages_[s].seconds[n]);
        sum.calls += 1;
      }
    for (simulate::MeasuredKernel& k : keys.kernels) {
      const Sum& sum = sums[static_cast<size_t>(k.seconds)];
      k.seconds = std::max(1e-9, sum.seconds / sum.calls);
    }
    return keys.kernels;
  }

  const KernelOptions& o_;
  const int ranks_;
  std::barrier<> together_;
  std::mutex mutex_;
  std::vector<StageTimes> stages_;
};

void require_memory(const KernelOptions& o) {
  const base::MachineMemory memory = base::machine_memory();
  const int64_t limit = memory.group > 0 ? std::min(memory.group, memory.machine) : memory.machine;
  int64_t needed = 0;
  for (const Program& p : o.stages) needed += p.bytes() * (o.stages[0].mesh.ranks() / p.mesh.stages());
  if (limit > 0 && needed > limit)
    throw base::UserError("bench", "the ranks of the run need {}, and this machine has {}; --ranks 1, or a smaller run",
                          base::format_bytes(static_cast<uint64_t>(needed)),
                          base::format_bytes(static_cast<uint64_t>(limit)));
}

}  // namespace

std::vector<simulate::MeasuredKernel> measure_kernels(const KernelOptions& options) {
  if (compile::on_a_device(options.settings))
    throw base::UserError("bench",
                          "parallel.device = \"{}\": the time of kernels is measured on the processor alone so far; "
                          "--set parallel.device=cpu",
                          name_of(compile::device_of(options.settings)));
  require_memory(options);
  return Ranks(options).run();
}

}  // namespace kintsugi::calibrate

// A rank of mpi_layouts_test.cpp: small models in every layout of this number of ranks over MPI, compared with one rank
// in this process. Prints "rank 1: 14 layouts agree", or the difference. "damaged": with a changed weight on rank 0.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "kintsugi/comm/mpi_world.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/models/step.h"
#include "kintsugi/program/state_runs.h"
#include "kintsugi/train/batches.h"
#include "tests/layouts.h"

namespace kintsugi::tests {
namespace {

constexpr int64_t kSteps = 2;
constexpr double kTolerance = 1e-9;

struct Layout {
  std::string model, parallel;
};

const std::vector<Layout> kLayouts = {
    {"gpt", "data=2"},
    {"gpt", "data=2 zero=1"},
    {"gpt", "data=2 zero=2"},
    {"gpt", "data=2 zero=3"},
    {"gpt", "tensor=2"},
    {"gpt", "tensor=2 sequence_parallel"},
    {"gpt", "context=2"},
    {"gpt", "context=2 method=ring"},
    {"gpt", "context=2 method=ulysses"},
    {"gpt-three", "tensor=2 sequence_parallel"},
    {"gpt-three", "context=2 method=ring"},
    {"llama", "data=2 zero=3"},
    {"llama", "tensor=2 sequence_parallel"},
    {"llama-three", "tensor=2"},
    {"llama", "context=2 method=ulysses"},
    {"gpt", "data=4 zero=3"},
    {"gpt", "data=4 zero=3 shard_group=2"},
    {"gpt", "tensor=4 sequence_parallel"},
    {"gpt", "context=4 method=ring balance=contiguous"},
    {"gpt", "data=2 tensor=2 zero=3 sequence_parallel"},
    {"gpt", "data=2 context=2 zero=2 method=ring"},
    {"gpt-three", "tensor=2 context=2 sequence_parallel method=ulysses"},
    {"llama", "data=2 tensor=2 zero=2"},
    {"llama-three", "tensor=4"},
    {"llama", "tensor=2 context=2 sequence_parallel method=ring"},
    {"gpt-deep", "pipe=2"},
    {"llama-deep", "pipe=2 schedule=interleaved chunks=2"},
    {"gpt-deep", "pipe=2 schedule=zero_bubble recompute=full"},
    {"gpt-deep", "pipe=4 schedule=gpipe"},
    {"gpt-deep", "pipe=2 data=2 zero=3"},
    {"llama-deep", "pipe=2 tensor=2 sequence_parallel schedule=zero_bubble"},
};

// "-deep": more layers, for stages, and micro-batches. "-three": 3 key-value heads with 2 query heads each, and sizes
// that 2 does not divide.
config::Settings settings_of(const std::string& model) {
  config::Settings s = small_model(model.substr(0, model.find('-')), "fp64");
  s.model.dropout = 0.2;
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  if (model.ends_with("-three")) {
    s.model.heads = 6;
    s.model.kv_heads = 3;
    s.model.ffn = 33;
    s.train.sequence = 7;
  } else if (model.ends_with("-deep")) {
    s.model.layers = 4;
    s.train.micro_batch = 2;
  }
  return s;
}

program::Program program_of(const config::Settings& s, const kernels::KernelSet& kernels, const comm::World& world) {
  const std::vector<program::Program> stages = compile::compile({.settings = s, .kernels = kernels});
  return stages[static_cast<size_t>(stages[0].mesh.stage_of(world.rank()))];
}

// A layout over all ranks of the world.
class Run {
 public:
  Run(const config::Settings& s, comm::World& world, bool damaged)
      : s_(s), kernels_(compile::kernels_of(s)), executor_(program_of(s, *kernels_, world), *kernels_, team_, &world) {
    executor_.initialize(s.train.seed);
    if (damaged && world.rank() == 0) executor_.state("layer0.attention_norm.gamma").as<double>()[0] += 1e-3;
  }

  void step(int64_t number) {
    kernels::Numbers numbers = {.seed = s_.train.seed,
                                .step = number,
                                .batch_rows = s_.train.micro_batch * s_.parallel.data,
                                .learning_rate = 1e-2};
    samples::BatchMemory whole;
    executor_.run(program::Step::train, numbers, [&](const run::Executor::Inputs& inputs) {
      draw_batch(s_, number, inputs.micro_batch(), whole);
      evaluate::set_inputs(inputs, whole.view(), 0);
    });
  }

  double loss() const { return executor_.number(models::kLossSum) / executor_.number(models::kLossCount); }

  // Compares this rank's gradients with the whole ones; "" if they agree.
  std::string difference(const Numbers& want) const {
    const program::Program& p = executor_.program();
    const double scale = norm(want);
    int64_t seen = 0;
    std::string found;
    for (program::StateInfo info : p.states) {
      if (info.kind != program::StateKind::gradient || info.replica) continue;
      if (info.reduced != program::kNoBuffer) info.buffer = info.reduced;
      const std::vector<double>& x = want.at(info.name);
      const double* y = reinterpret_cast<const double*>(executor_.state_view(info.buffer).data);
      program::for_each_run(p, info, executor_.rank(), [&](const program::Run& run) {
        for (int64_t i = 0; i < run.count; ++i, ++seen) {
          const double right = x[static_cast<size_t>(run.whole + i)], got = y[run.at + i];
          if (found.empty() && !(std::abs(got - right) <= kTolerance * scale))
            found = fmt::format("element {} of {} differs", run.whole + i, info.name);
        }
      });
    }
    return seen == 0 ? "no gradient lies here" : found;
  }

 private:
  const config::Settings& s_;
  std::unique_ptr<kernels::KernelSet> kernels_;
  base::ThreadTeam team_{1};
  run::Executor executor_;
};

const Record& twin_of(const std::string& model) {
  static std::map<std::string, Record> known;
  Record& r = known[model];
  if (r.losses.empty()) {
    const config::Settings s = settings_of(model);
    train::LayoutRun run(s);
    r = record(run, s, kSteps);
  }
  return r;
}

std::string difference(const Layout& layout, const config::Settings& s, comm::World& world, bool damaged) {
  const Record& want = twin_of(layout.model);
  Run run(s, world, damaged);
  std::string found;
  for (int64_t i = 0; i < kSteps; ++i) {
    run.step(i);
    const double right = want.losses[static_cast<size_t>(i)];
    if (found.empty() && !(std::abs(run.loss() - right) <= kTolerance * right))
      found = fmt::format("step {}: the loss differs", i);
    const std::string gradient = run.difference(want.gradients[static_cast<size_t>(i)]);
    if (found.empty() && !gradient.empty()) found = fmt::format("step {}: {}", i, gradient);
  }
  return found;
}

void all_layouts(comm::World& world, bool damaged) {
  int agree = 0;
  for (const Layout& layout : kLayouts) {
    config::Settings s = settings_of(layout.model);
    set_layout(s, layout.parallel);
    s.train.micro_batch /= s.parallel.data;
    if (s.parallel.ranks != world.size()) continue;
    const std::string found = difference(layout, s, world, damaged);
    if (found.empty()) {
      ++agree;
    } else {
      fmt::print("rank {}: {}: {}: {}\n", world.rank(), layout.model, layout.parallel, found);
    }
    if (damaged) break;
  }
  fmt::print("rank {}: {} layouts agree\n", world.rank(), agree);
  std::fflush(stdout);
}

}  // namespace
}  // namespace kintsugi::tests

int main(int argc, char** argv) {
  using namespace kintsugi;
  try {
    const std::unique_ptr<comm::World> world = comm::mpi_world();
    try {
      tests::all_layouts(*world, argc > 1 && std::string(argv[1]) == "damaged");
      return 0;
    } catch (const std::exception& e) {  // said while there is a world: as it goes, it ends all processes
      fmt::print("rank {}: {}\n", world->rank(), e.what());
      world->abort(e.what());
    }
  } catch (const std::exception& e) {
    fmt::print("{}\n", e.what());
  }
  return 1;
}

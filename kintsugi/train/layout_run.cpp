#include "kintsugi/train/layout_run.h"

#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/evaluate/make_executor.h"
#include "kintsugi/models/step.h"
#include "kintsugi/run/state_blocks.h"
#include "kintsugi/train/batches.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::train {

LayoutRun::LayoutRun(const config::Settings& settings, std::optional<plan::Plan> plan, const Damage& damage,
                     const comm::MakeWorlds& make_worlds, models::Logits logits, models::BuildTrunk build)
    : settings_(settings), parts_(parts_of(settings)), kernels_(compile::kernels_to_run(settings)) {
  const models::Graphs graphs = models::build_training(settings_, logits, build);
  const plan::Plan used = plan ? *plan : compile::plan_of(settings_);
  std::vector<program::Program> stages =
      compile::compile({.settings = settings_, .kernels = *kernels_, .graphs = &graphs, .plan = &used});
  if (!build) evaluate::require_inputs(stages, program::Step::train, parts_);
  if (damage)
    for (program::Program& p : stages) damage(p);
  const mesh::Mesh mesh = stages[0].mesh;
  const auto ranks = static_cast<int>(mesh.ranks());
  worlds_ = make_worlds(ranks, {.time_limit = comm::time_limit(settings_.parallel.timeout_seconds)});
  require_order(*worlds_[0], settings_);
  teams_.resize(static_cast<size_t>(ranks));
  executors_.resize(static_cast<size_t>(ranks));
  comm::run_ranks(worlds_, [&](comm::World& world) {
    const auto r = static_cast<size_t>(world.rank());
    teams_[r] = std::make_unique<base::ThreadTeam>(static_cast<int>(settings_.parallel.threads));
    const program::Program& program = stages[static_cast<size_t>(mesh.stage_of(world.rank()))];
    const std::string& folder = settings_.parallel.offload_folder;
    const run::Place place = {
        .world = &world,
        .offload_folder = folder.empty() ? base::temporary_folder() : std::filesystem::path(folder),
        .time_limit = comm::time_limit(settings_.parallel.timeout_seconds)};
    executors_[r] = evaluate::make_executor(program, *kernels_, *teams_[r], place);
    executors_[r]->initialize(settings_.train.seed);
  });
}

LayoutRun::~LayoutRun() = default;

void LayoutRun::step(int64_t step, double learning_rate, const samples::Parts& parts,
                     const std::function<void(int64_t, samples::BatchMemory&)>& batch) {
  const int64_t rows = compile::samples_of_pass(settings_);
  comm::run_ranks(worlds_, [&](comm::World& world) {
    run::Executor& executor = *executors_[static_cast<size_t>(world.rank())];
    kernels::Numbers numbers = {
        .seed = settings_.train.seed, .step = step, .batch_rows = rows, .learning_rate = learning_rate};
    samples::BatchMemory whole(rows, parts);
    executor.run(program::Step::train, numbers, [&](const run::Executor::Inputs& inputs) {
      batch(inputs.micro_batch(), whole);
      evaluate::set_inputs(inputs, whole.view(), 0);
    });
  });
}

double LayoutRun::loss() const {
  return executors_[0]->number(models::kLossSum) / executors_[0]->number(models::kLossCount);
}

double LayoutRun::tokens() const {
  return executors_[0]->number(models::kLossCount);
}

std::map<std::string, std::vector<double>> LayoutRun::states(program::StateKind kind) const {
  return whole_states([&](const program::StateInfo& s) {
    return s.kind == kind && !(s.replica && kind == program::StateKind::gradient);  // the sum is on the weight's stage
  });
}

std::vector<double> LayoutRun::state(std::string_view name) const {
  auto found = whole_states([&](const program::StateInfo& s) { return s.name == name; });
  base::require(found.size() == 1, "compare", "no state \"{}\"", name);
  return std::move(found.begin()->second);
}

std::map<std::string, std::vector<double>> LayoutRun::whole_states(
    const std::function<bool(const program::StateInfo&)>& wanted) const {
  struct Whole {
    std::vector<double> values;
    std::vector<bool> held;
  };
  std::map<std::string, Whole> found;
  for (int rank = 0; rank < ranks(); ++rank) {
    const program::Program& p = executor(rank).program();
    for (program::StateInfo s : p.states) {
      if (!wanted(s)) continue;
      if (s.reduced != program::kNoBuffer) s.buffer = s.reduced;
      Whole& whole = found[s.name];
      const auto size = static_cast<size_t>(s.whole.shape.elements());
      whole.values.resize(size, std::numeric_limits<double>::quiet_NaN());
      whole.held.resize(size, false);
      const auto take = [&]<typename T>(T) {
        run::look_at_runs(executor(rank), s, [&](const program::Run& run, const std::byte* data) {
          const T* x = reinterpret_cast<const T*>(data);
          for (int64_t i = 0; i < run.count; ++i) {
            const auto value = static_cast<double>(static_cast<tensor::arithmetic_t<T>>(x[i]));
            const auto at = static_cast<size_t>(run.whole + i);
            const double known = whole.values[at];
            base::require(!whole.held[at] || known == value || (std::isnan(value) && std::isnan(known)), "compare",
                          "rank {} has {} for element {} of \"{}\", another rank {}", rank, value, at, s.name, known);
            whole.values[at] = value;
            whole.held[at] = true;
          }
        });
      };
      const tensor::DType dtype = p.buffer(s.buffer).type.dtype;
      if (dtype == tensor::DType::u8)
        take(uint8_t{});
      else
        dtype == tensor::DType::i8 ? take(int8_t{}) : tensor::dispatch(dtype, take);
    }
  }
  std::map<std::string, std::vector<double>> all;
  for (auto& [name, whole] : found) {
    for (size_t i = 0; i < whole.held.size(); ++i)
      base::require(whole.held[i], "compare", "element {} of \"{}\" is on no rank", i, name);
    all[name] = std::move(whole.values);
  }
  return all;
}

}  // namespace kintsugi::train

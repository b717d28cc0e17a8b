#include "kintsugi/train/rank.h"

#include <spdlog/spdlog.h>

#include "kintsugi/base/bind.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/local_parts.h"
#include "kintsugi/checkpoint/open.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/device_groups.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/evaluate/make_executor.h"
#include "kintsugi/run/same_programs.h"
#include "kintsugi/train/require_memory.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::train {

using program::Program;

namespace {

void open_newest(Rank& rank) {
  const std::filesystem::path folder = rank.folder();
  if (const std::string& local = rank.settings().checkpoint.local; !local.empty())
    if (const auto step = checkpoint::recover_local_parts(folder, local, *rank.all); step && rank.leads())
      spdlog::warn("step {} was completed from the nodes' own disks", *step);
  rank.newest = checkpoint::open_newest_whole(folder, *rank.all);
  const int64_t damaged = rank.newest ? 0 : comm::of_rank_0(*rank.all, std::ssize(checkpoint::list(folder)));
  if (damaged > 0)
    throw comm::SharedError(
        "train",
        "nothing to resume in \"{}\": each of its {} checkpoints is damaged; start over in another train.folder",
        folder.string(), damaged);
}

void open_data(Rank& rank) {
  DataFiles files;
  comm::together(*rank.all, [&] {
    files = open_data_files(rank.config);
    if (rank.newest) require_same_data(data_of(*rank.newest), files.identity, rank.folder().string());
  });
  comm::require_same(*rank.all, "train", "token file or tokenizer", to_lines(files.identity));
  comm::together(*rank.all, [&] {
    rank.corpus = make_corpus(rank.config, files);
    rank.tasks = open_tasks(rank.settings(), rank.corpus.tokenizer_json);
  });
  if (rank.tasks) comm::require_same(*rank.all, "train", "task", rank.tasks->digest());
  if (rank.leads() && !rank.corpus.note.empty()) spdlog::warn("{}", rank.corpus.note);
  if (rank.leads() && rank.tasks)
    for (const std::string& note : rank.tasks->notes()) spdlog::warn("{}", note);
}

// The programs of all stages, after checking that all ranks have the same ones and enough memory.
std::vector<Program> agreed_programs(const Rank& rank, const RankOptions& options) {
  std::vector<Program> stages;
  comm::together(*rank.all,
                 [&] { stages = compile::compile({.settings = rank.settings(), .kernels = *rank.kernels}); });
  require_memory(rank.settings(), stages, machine_of(rank.settings(), rank.kernels->device()), *rank.all, options.now);
  run::require_same_programs(*rank.all, "train", stages);
  return stages;
}

// Over all ranks.
double flops_of_step(const std::vector<Program>& stages) {
  double of_each = 0;
  for (const Program& p : stages) of_each += p.flops(program::Step::train);
  return of_each * static_cast<double>(stages[0].mesh.ranks()) / static_cast<double>(stages.size());
}

std::filesystem::path offload_folder(const Rank& rank) {
  const std::string& folder = rank.settings().parallel.offload_folder;
  return folder.empty() ? rank.folder() : std::filesystem::path(folder);
}

void make_executor(Rank& rank, Program program) {
  rank.team = std::make_unique<base::ThreadTeam>(static_cast<int>(rank.settings().parallel.threads));
  rank.executor =
      evaluate::make_executor(std::move(program), *rank.kernels, *rank.team,
                              run::Place{.world = &rank.world,
                                         .offload_folder = offload_folder(rank),
                                         .time_limit = comm::time_limit(rank.settings().parallel.timeout_seconds)});
}

// Binds each thread of each rank to a core, if this process has enough cores.
void bind_threads(const Rank& rank) {
  base::ThreadTeam& team = *rank.team;
  if (!rank.settings().parallel.bind || rank.world.size() * team.size() > base::usable_cores()) return;
  const std::vector<int> cores = base::cores_of_process();
  const int first = rank.world.rank() * team.size();
  team.run([&](int thread) { base::bind_thread(cores[static_cast<size_t>(first + thread)]); });
}

}  // namespace

Rank make_rank(config::Resolved config, comm::World& world, const RankOptions& options) {
  Rank rank = {.world = world, .config = std::move(config)};
  rank.all = comm::group_of_all(world);
  if (options.resume) {
    options.now("checking the newest checkpoint");
    open_newest(rank);
  }
  options.now("opening the data");
  open_data(rank);
  options.now("compiling");
  comm::together(*rank.all, [&] {
    rank.kernels = compile::kernels_to_run(rank.settings());
    if (rank.kernels->device()) comm::require_known_way(world);
  });
  std::vector<Program> stages = agreed_programs(rank, options);
  evaluate::require_inputs(stages, program::Step::train, rank.corpus.train->parts());
  for (const ValidationSamples& validation : rank.corpus.validation)
    evaluate::require_inputs(stages, program::Step::evaluate, validation.samples->parts());
  rank.step_flops = flops_of_step(stages);
  comm::together(*rank.all, [&] {
    if (options.plan && rank.leads()) rank.planned_seconds = options.plan(stages);
  });
  options.now("allocating memory");
  make_executor(rank, compile::program_of_rank(std::move(stages), world.rank()));
  if (!options.alone) bind_threads(rank);
  return rank;
}

}  // namespace kintsugi::train

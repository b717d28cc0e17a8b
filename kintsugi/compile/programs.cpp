#include "kintsugi/compile/programs.h"

#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/config/batch_warmup.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/device/device.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/gpu/cuda/algorithm_file.h"
#include "kintsugi/kernels/gpu/device_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/lower/fuse/join_head.h"
#include "kintsugi/lower/order/recompute.h"
#include "kintsugi/lower/partition/stages.h"
#include "kintsugi/models/models.h"
#include "kintsugi/plan/check_plan.h"

namespace kintsugi::compile {

using config::Settings;
using program::Program;

namespace {

lower::Recompute recompute_of(const config::Parallel& p) {
  using What = lower::Recompute::What;
  switch (recomputed(p)) {
    case config::Recomputed::nothing:
      return {What::none, p.recompute_every};
    case config::Recomputed::light:
      return {What::light, p.recompute_every};
    case config::Recomputed::attention:
      return {What::selective, p.recompute_every};
    case config::Recomputed::layers:
      return {What::full, p.recompute_every};
  }
  throw base::InternalError("compile", "recompute \"{}\" was not checked", p.recompute);
}

lower::Offload offload_of(const config::Parallel& p) {
  const config::Offloaded what = offloaded(p);
  return {.optimizer = what.optimizer, .activations = what.activations};
}

// The passes other than a training step's.
std::vector<lower::Source::Pass> passes_of(const models::Graphs& g) {
  using program::Work;
  std::vector<lower::Source::Pass> passes;
  const std::pair<Work, const std::optional<graph::Graph>*> all[] = {{Work::evaluate, &g.evaluate},
                                                                     {Work::sample, &g.sample},
                                                                     {Work::tasks, &g.tasks},
                                                                     {Work::prefill, &g.prefill},
                                                                     {Work::prefill_quarter, &g.prefill_quarter},
                                                                     {Work::score, &g.score},
                                                                     {Work::decode, &g.decode},
                                                                     {Work::decode_half, &g.decode_half},
                                                                     {Work::decode_quarter, &g.decode_quarter},
                                                                     {Work::decode_one, &g.decode_one}};
  for (const auto& [work, graph] : all)
    if (*graph) passes.push_back({work, &**graph});
  return passes;
}

// The numbers of micro-batches of steps within the warm-up of the batch, each once.
std::vector<int64_t> shorter_steps(const Settings& s) {
  std::set<int64_t> counts;
  for (const config::BatchStage& stage : config::batch_stages(s.train))
    counts.insert(stage.samples / samples_of_pass(s));
  return {counts.begin(), counts.end()};
}

std::vector<Program> lower_training(const Request& r, const models::Graphs& graphs, const plan::Plan& plan,
                                    int threads) {
  const Settings& s = r.settings;
  const graph::Graph micro =
      lower::recompute(*graphs.micro, recompute_of(s.parallel), static_cast<int>(s.model.layers));
  const bool timed = r.extent == lower::Extent::timed;
  return lower::lower({.states = *graphs.states,
                       .micro = &micro,
                       .update = &*graphs.update,
                       .passes = timed ? std::vector<lower::Source::Pass>() : passes_of(graphs),
                       .micro_batches = micro_batches(s),
                       .shorter = shorter_steps(s)},
                      {.plan = plan,
                       .kernels = r.kernels,
                       .threads = threads,
                       .offload = offload_of(s.parallel),
                       .sums_in_rank_order = s.train.reproducible > 0,
                       .extent = r.extent},
                      r.dump);
}

}  // namespace

config::Device device_of(const Settings& s) {
  const config::Device asked = config::device(s.parallel);
  if (asked != config::Device::automatic) return asked;
  const bool suits = tensor::dtype_from(s.train.dtype) != tensor::DType::f64;
  return suits && device::find_device(name_of(config::Device::cuda)).usable ? config::Device::cuda
                                                                            : config::Device::cpu;
}

bool takes_tf32(const Settings& s) {
  return s.parallel.tf32 && s.train.dtype == "fp32" && device_of(s) == config::Device::cuda;
}

std::string passed_over(const Settings& s) {
  if (config::device(s.parallel) != config::Device::automatic || device_of(s) != config::Device::cpu) return "";
  const std::string& why = device::find_device(name_of(config::Device::cuda)).why_not;
  return why.empty() ? "" : fmt::format("parallel.device = \"auto\" takes the processor: {}", why);
}

bool on_a_device(const Settings& s) {
  const config::Device device = device_of(s);
  return device != config::Device::cpu && device != config::Device::reference;
}

std::unique_ptr<kernels::KernelSet> kernels_of(const Settings& s) {
  if (on_a_device(s)) return kernels::planned_device_kernels();
  return device_of(s) == config::Device::reference ? kernels::reference_kernels() : kernels::cpu_kernels();
}

std::unique_ptr<kernels::KernelSet> kernels_to_run(const Settings& s) {
  if (!on_a_device(s)) return kernels_of(s);
  const std::string_view device = name_of(device_of(s));
  if (tensor::dtype_from(s.train.dtype) == tensor::DType::f64)
    throw base::UserError("config", "parallel.device = \"{}\" computes in fp32, bf16 or fp16, and not in fp64", device);
  if (const std::string why = products_not_kept(s); !why.empty() && kernels::AlgorithmFile::is_given())
    throw base::UserError("device", "KINTSUGI_PRODUCTS: {}", why);
  const int local = s.parallel.transport == "threads" ? 0 : launch::this_process().local_rank;
  return kernels::device_kernels(device::open_device(device, device::device_of_rank(device, local)), s.parallel.tf32);
}

std::string products_not_kept(const Settings& s) {
  if (device_of(s) != config::Device::cuda || s.train.reproducible > 0) return "";
  return kernels::AlgorithmFile::why_not(kernels::AlgorithmFile::default_path());
}

plan::Plan plan_of(const Settings& s) {
  const plan::Plan plan = plan::plan_from(s.parallel);
  return s.train.reproducible > 0 ? plan::in_units(plan) : plan;
}

// The single text of generation need not be divisible. The other graphs have no other splittable dims.
plan::ModelDims dims_of(const models::Graphs& graphs) {
  const graph::Graph* const list[] = {graphs.micro      ? &*graphs.micro
                                      : graphs.evaluate ? &*graphs.evaluate
                                                        : &*graphs.prefill};
  plan::ModelDims dims = plan::dims_of(list);
  if (!graphs.micro && !graphs.evaluate) plan::forget_size(dims, plan::kSamples);
  return dims;
}

namespace {

// The smallest taller image for which the plan has no error, "model.image_height = 32"; "" if a few hundred sizes have
// none. Families may allow multiples of 16 only.
std::string image_that_works(Settings s, const plan::Plan& plan) {
  constexpr int kMostTried = 300;
  const int64_t step = s.model.image_height < 64 ? 1 : 16;
  s.model.image_height -= s.model.image_height % step;
  for (int tried = 0; tried < kMostTried; ++tried) {
    s.model.image_height += step;
    try {
      plan::check_plan(plan, dims_of(models::build_training(s)));
      return fmt::format("model.image_height = {}", s.model.image_height);
    } catch (const base::UserError&) {  // too small, or not a size of this family
    }
  }
  return "";
}

}  // namespace

void check_plan(const Settings& s, const plan::Plan& plan, const models::Graphs& graphs) {
  try {
    plan::check_plan(plan, dims_of(graphs));
  } catch (const base::UserError& error) {
    constexpr std::string_view kWhere = "[plan] ";
    const std::string_view what = error.what();
    if (!what.starts_with(kWhere) || !models::reads_images(s.model) || s.parallel.space == 1) throw;
    std::string text(what.substr(kWhere.size()));
    if (const std::string size = image_that_works(s, plan); !size.empty()) text += fmt::format("; {} works", size);
    plan::Plan repeating = plan;
    repeating.repeat = true;
    try {
      plan::check_plan(repeating, dims_of(graphs));
      text += "; parallel.allow_repeat = true computes such layers on each rank";
    } catch (const base::UserError&) {  // it would not help
    }
    throw base::UserError("plan", "{}", text);
  }
}

int64_t micro_batches(const Settings& s) {
  return s.train.global_batch / samples_of_pass(s);
}

int64_t samples_of_pass(const Settings& s) {
  return s.train.micro_batch * config::data_ranks(s.parallel);
}

std::vector<double> layer_flops(const Settings& s) {
  return layer_flops(s, *models::build_training(s).micro);
}

std::vector<double> layer_flops(const Settings& s, const graph::Graph& micro) {
  const auto layers = static_cast<int>(s.model.layers);
  return lower::layer_flops(lower::join_head(lower::recompute(micro, recompute_of(s.parallel), layers), plan_of(s)),
                            layers);
}

std::vector<Program> compile(const Request& request) {
  const Settings& s = request.settings;
  const bool trains = !request.graphs || request.graphs->micro;
  const plan::Plan plan = request.plan ? *request.plan : trains ? plan_of(s) : plan::plan_from(s.parallel);
  const int threads = request.threads > 0 ? request.threads : static_cast<int>(s.parallel.threads);
  models::Graphs made;
  if (!request.graphs) made = models::build_training(s);
  const models::Graphs& graphs = request.graphs ? *request.graphs : made;
  if (!request.plan) check_plan(s, plan, graphs);
  if (trains) return lower_training(request, graphs, plan, threads);
  return lower::lower({.states = *graphs.states,
                       .passes = passes_of(graphs),
                       .micro_batches = plan.stages()},  // the minimum of every training schedule
                      {.plan = plan, .kernels = request.kernels, .threads = threads, .extent = request.extent});
}

Program only_stage(std::vector<Program> stages) {
  base::require(stages.size() == 1, "compile", "{} stages have {} programs", stages.size(), stages.size());
  return std::move(stages[0]);
}

Program program_of_rank(std::vector<Program> stages, int rank) {
  return std::move(stages[static_cast<size_t>(stages[0].mesh.stage_of(rank))]);
}

}  // namespace kintsugi::compile

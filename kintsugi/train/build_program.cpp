#include "kintsugi/train/build_program.h"

#include "kintsugi/base/error.h"
#include "kintsugi/lower/recompute.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/check_plan.h"

namespace kintsugi::train {
namespace {

lower::Recompute recompute_of(const config::Parallel& p) {
  using What = lower::Recompute::What;
  return {p.recompute == "full"        ? What::full
          : p.recompute == "selective" ? What::selective
                                       : What::none,
          p.recompute_every};
}

lower::Offload offload_of(const config::Parallel& p) {
  return {.optimizer = p.offload == "optimizer" || p.offload == "all",
          .activations = p.offload == "activations" || p.offload == "all"};
}

std::vector<program::Program> lowered(const config::Settings& s, models::Graphs graphs,
                                      const kernels::KernelSet& kernels, const plan::Plan& plan,
                                      const lower::Dump& dump) {
  graphs.micro = lower::recompute(*graphs.micro, recompute_of(s.parallel), static_cast<int>(s.model.layers));
  return lower::lower({.states = *graphs.states,
                       .micro = &*graphs.micro,
                       .update = &*graphs.update,
                       .evaluate = &*graphs.evaluate,
                       .micro_batches = micro_batches(s)},
                      {.plan = plan,
                       .kernels = kernels,
                       .threads = static_cast<int>(s.parallel.threads),
                       .offload = offload_of(s.parallel)},
                      dump);
}

}  // namespace

std::unique_ptr<kernels::KernelSet> kernels_of(const config::Settings& s) {
  return kernels::kernels_named(s.train.kernels, tensor::dtype_from(s.train.dtype));
}

int64_t micro_batches(const config::Settings& s) {
  return s.train.global_batch / (s.train.micro_batch * s.parallel.data);
}

plan::Plan plan_of(const config::Settings& s) {
  const plan::Plan plan = plan::plan_from(s.parallel);
  return s.train.reproducible > 0 ? plan::in_units(plan) : plan;
}

plan::ModelDims dims_of(const models::Graphs& graphs) {
  const graph::Graph* const list[] = {&*graphs.micro};  // the others have no other dims that may be split
  return plan::dims_of(list);
}

std::vector<program::Program> build_programs(const config::Settings& s, const kernels::KernelSet& kernels,
                                             const lower::Dump& dump) {
  const plan::Plan plan = plan_of(s);
  models::Graphs graphs = models::build_training(s);
  plan::check_plan(plan, dims_of(graphs));
  return lowered(s, std::move(graphs), kernels, plan, dump);
}

std::vector<program::Program> build_programs(const config::Settings& s, const kernels::KernelSet& kernels,
                                             const plan::Plan& plan, const lower::Dump& dump) {
  return lowered(s, models::build_training(s), kernels, plan, dump);
}

program::Program build_program(const config::Settings& s, const kernels::KernelSet& kernels) {
  std::vector<program::Program> stages = build_programs(s, kernels);
  base::require(stages.size() == 1, "train", "{} stages have {} programs", stages.size(), stages.size());
  return std::move(stages[0]);
}

}  // namespace kintsugi::train

#include "kintsugi/build/programs.h"

#include "kintsugi/base/error.h"
#include "kintsugi/lower/recompute.h"
#include "kintsugi/plan/check_plan.h"
#include "kintsugi/plan/check_rules.h"
#include "kintsugi/plan/check_sizes.h"

namespace kintsugi::build {

using config::Settings;
using program::Program;

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

const graph::Graph* pointer_to(const std::optional<graph::Graph>& g) {
  return g ? &*g : nullptr;
}

// The plan against the model and its samples. The one text of a generation need not be divided.
void check(const plan::Plan& plan, const Settings& settings, const models::Graphs& graphs) {
  std::vector<tensor::Dim> dims = plan::dims_of(settings);
  const graph::Graph& g = graphs.evaluate ? *graphs.evaluate : *graphs.prefill;
  for (const graph::Op& op : g.ops()) {
    if (op.kind() != "input" || op.attributes.text("name") != "tokens") continue;
    const tensor::Shape& tokens = g.type(op.outs[0]).shape;
    for (tensor::Dim& d : dims) {
      if (d.name == "batch") d.size = graphs.evaluate ? tokens.size("batch") : 0;
      if (d.name == "seq" || d.name == "key_seq") d.size = tokens.size("seq");
    }
  }
  plan::check_rules(plan, dims);
  plan::check_sizes(plan, dims);
}

}  // namespace

std::unique_ptr<kernels::KernelSet> kernels_of(const Settings& s) {
  return kernels::kernels_named(s.train.kernels, tensor::dtype_from(s.train.dtype));
}

plan::Plan plan_of(const Settings& s) {
  const plan::Plan plan = plan::plan_from(s.parallel);
  return s.train.reproducible > 0 ? plan::in_units(plan) : plan;
}

int64_t micro_batches(const Settings& s) {
  return s.train.global_batch / samples_of_pass(s);
}

int64_t samples_of_pass(const Settings& s) {
  return s.train.micro_batch * s.parallel.data;
}

std::vector<Program> build_programs(const Settings& s, const kernels::KernelSet& kernels, const lower::Dump& dump) {
  return build_programs(s, kernels, plan_of(s), dump);
}

std::vector<Program> build_programs(const Settings& s, const kernels::KernelSet& kernels, const plan::Plan& plan,
                                    const lower::Dump& dump) {
  models::Graphs graphs = models::build_training(s);
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

std::vector<Program> build_programs(const models::Graphs& graphs, const plan::Plan& plan,
                                    const kernels::KernelSet& kernels, int threads) {
  return lower::lower({.states = *graphs.states,
                       .evaluate = pointer_to(graphs.evaluate),
                       .prefill = pointer_to(graphs.prefill),
                       .decode = pointer_to(graphs.decode),
                       .micro_batches = plan.stages()},  // no schedule of training takes fewer
                      {.plan = plan, .kernels = kernels, .threads = threads});
}

std::vector<Program> checked_programs(const Settings& s, const kernels::KernelSet& kernels, const lower::Dump& dump) {
  const plan::Plan plan = plan_of(s);
  plan::check_plan(plan, s);
  return build_programs(s, kernels, plan, dump);
}

std::vector<Program> checked_programs(const models::Graphs& graphs, const Settings& s,
                                      const kernels::KernelSet& kernels) {
  const plan::Plan plan = plan::plan_from(s.parallel);
  check(plan, s, graphs);
  return build_programs(graphs, plan, kernels, static_cast<int>(s.parallel.threads));
}

Program build_program(const Settings& s, const kernels::KernelSet& kernels) {
  std::vector<Program> stages = build_programs(s, kernels);
  base::require(stages.size() == 1, "build", "{} stages have {} programs", stages.size(), stages.size());
  return std::move(stages[0]);
}

Program build_program(const models::Graphs& graphs, const kernels::KernelSet& kernels, int threads) {
  return std::move(build_programs(graphs, plan::plan_from({}), kernels, threads)[0]);
}

Program program_of_rank(std::vector<Program> stages, int rank) {
  return std::move(stages[static_cast<size_t>(program::stage_of(stages[0].mesh, rank))]);
}

}  // namespace kintsugi::build

#include "kintsugi/train/build_program.h"

#include "kintsugi/models/step.h"

namespace kintsugi::train {

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

program::Program build_program(const config::Settings& s, const kernels::KernelSet& kernels, const lower::Dump& dump) {
  return build_program(s, kernels, plan_of(s), dump);
}

program::Program build_program(const config::Settings& s, const kernels::KernelSet& kernels, const plan::Plan& plan,
                               const lower::Dump& dump) {
  const models::Graphs graphs = models::build_training(s);
  return lower::lower({.states = *graphs.states,
                       .micro = &*graphs.micro,
                       .update = &*graphs.update,
                       .evaluate = &*graphs.evaluate,
                       .micro_batches = micro_batches(s)},
                      {.plan = plan, .kernels = kernels, .threads = static_cast<int>(s.parallel.threads)}, dump);
}

}  // namespace kintsugi::train

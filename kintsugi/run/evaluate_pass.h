// The loss over many batches, by the list of calls `evaluate`.
#pragma once

#include "kintsugi/run/executor.h"

namespace kintsugi::run {

struct LossSum {
  double sum = 0;  // over counted tokens
  double count = 0;

  double mean() const { return sum / count; }
};

// Calls fill(inputs, batch number), which sets the inputs, before each of `batches` runs.
template <typename F>
LossSum run_evaluation(Executor& executor, int64_t batches, F&& fill) {
  executor.set_number("evaluate.sum", 0);
  executor.set_number("evaluate.count", 0);
  kernels::Numbers numbers;
  for (int64_t i = 0; i < batches; ++i)
    executor.run(program::Step::evaluate, numbers, [&](const Executor::Inputs& inputs) { fill(inputs, i); });
  return {executor.number("evaluate.sum"), executor.number("evaluate.count")};
}

}  // namespace kintsugi::run

// The loss over many batches, by the list of calls `evaluate`.
#pragma once

#include <optional>
#include <utility>

#include "kintsugi/run/executor.h"

namespace kintsugi::run {

struct LossSum {
  double sum = 0;  // over counted tokens
  double count = 0;

  double mean() const { return sum / count; }
};

// Calls fill(inputs, batch number), which sets the inputs, before each of `batches` runs, and before that
// goes_on(batch number), which all ranks answer alike: at the first false it ends, with nothing.
template <typename F, typename G>
std::optional<LossSum> run_evaluation(Executor& executor, int64_t batches, F&& fill, G&& goes_on) {
  executor.set_number("evaluate.sum", 0);
  executor.set_number("evaluate.count", 0);
  kernels::Numbers numbers;
  for (int64_t i = 0; i < batches; ++i) {
    if (!goes_on(i)) return std::nullopt;
    executor.run(program::Step::evaluate, numbers, [&](const Executor::Inputs& inputs) { fill(inputs, i); });
  }
  return LossSum{executor.number("evaluate.sum"), executor.number("evaluate.count")};
}

// The same to its end.
template <typename F>
LossSum run_evaluation(Executor& executor, int64_t batches, F&& fill) {
  return *run_evaluation(executor, batches, std::forward<F>(fill), [](int64_t) { return true; });
}

}  // namespace kintsugi::run

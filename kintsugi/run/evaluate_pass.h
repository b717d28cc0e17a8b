// Evaluates the loss over many batches, by the list of calls `evaluate`.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "kintsugi/run/executor.h"

namespace kintsugi::run {

struct LossSum {
  double sum = 0;  // over counted tokens
  double count = 0;
  // For classifiers: the samples whose class was predicted, and was among the five most likely.
  std::optional<double> top1 = {}, top5 = {};
  // For preferences: the pairs with a positive reward margin, and the sum of the margins.
  std::optional<double> correct = {}, reward = {};
  // For fields: the sum of squared differences of each channel.
  std::vector<double> errors = {};

  double mean() const { return sum / count; }
  void add(const LossSum& other) {
    sum += other.sum, count += other.count;
    if (other.top1) top1 = top1.value_or(0) + *other.top1;
    if (other.top5) top5 = top5.value_or(0) + *other.top5;
    if (other.correct) correct = correct.value_or(0) + *other.correct;
    if (other.reward) reward = reward.value_or(0) + *other.reward;
    errors.resize(other.errors.empty() ? errors.size() : other.errors.size());
    for (size_t i = 0; i < other.errors.size(); ++i) errors[i] += other.errors[i];
  }
};

// Calls fill(inputs, batch number), which sets the inputs, before each of `batches` runs, and before that goes_on(batch
// number), which all ranks answer alike: stops at the first false, with nothing.
template <typename F, typename G>
std::optional<LossSum> run_evaluation(Executor& executor, int64_t batches, F&& fill, G&& goes_on) {
  executor.set_number("evaluate.sum", 0);
  executor.set_number("evaluate.count", 0);
  const bool classes = executor.has_state("evaluate.top1");
  if (classes) executor.set_number("evaluate.top1", 0), executor.set_number("evaluate.top5", 0);
  const bool pairs = executor.has_state("evaluate.measured.correct");
  if (pairs) executor.set_number("evaluate.measured.correct", 0), executor.set_number("evaluate.measured.reward", 0);
  const bool fields = executor.has_state("evaluate.errors");
  if (fields) executor.set_list("evaluate.errors", 0);
  kernels::Numbers numbers;
  for (int64_t i = 0; i < batches; ++i) {
    if (!goes_on(i)) return std::nullopt;
    executor.run(program::Step::evaluate, numbers, [&](const Executor::Inputs& inputs) { fill(inputs, i); });
  }
  LossSum all{executor.number("evaluate.sum"), executor.number("evaluate.count")};
  if (classes) all.top1 = executor.number("evaluate.top1"), all.top5 = executor.number("evaluate.top5");
  if (pairs) {
    all.correct = executor.number("evaluate.measured.correct");
    all.reward = executor.number("evaluate.measured.reward");
  }
  if (fields) all.errors = executor.list("evaluate.errors");
  return all;
}

// As above, to its end.
template <typename F>
LossSum run_evaluation(Executor& executor, int64_t batches, F&& fill) {
  return *run_evaluation(executor, batches, std::forward<F>(fill), [](int64_t) { return true; });
}

}  // namespace kintsugi::run

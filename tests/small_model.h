// Small models for whole-program tests, and one step of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::tests {

// A family, "gpt", or one with an objective, "bert:classes". Sizes are odd where possible; heads are grouped.
config::Settings small_model(const std::string& name, const std::string& dtype);

// With values that can be offloaded: layer activations of 64 KiB and more, and a table of more than one piece.
config::Settings offload_model(const std::string& family, const std::string& dtype);

// The elements of a floating view in double precision, and back, rounded.
std::vector<double> values(const tensor::View& v);

void put(const tensor::View& v, const std::vector<double>& x);

// The error text that f throws, or "no error".
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

// A machine for a model: kernels, threads, program, memory. Uses the kernels of the settings unless given.
struct Machine {
  explicit Machine(const config::Settings& settings, std::unique_ptr<kernels::KernelSet> kernels = nullptr);

  // Tokens and labels as a function of the step and the sample.
  void fill(int64_t step, const run::Executor::Inputs& inputs);

  // The mean loss of the step.
  double step(int64_t number, double learning_rate);

  // Copies another machine's weights, rounded to the dtype here. Masters and moments are unchanged.
  void take_weights(const Machine& from);

  // All states of a kind, by name, in double precision.
  std::map<std::string, std::vector<double>> states(program::StateKind kind) const;

  config::Settings s;
  std::unique_ptr<kernels::KernelSet> kernels;
  base::ThreadTeam team;
  run::Executor executor;

 private:
  samples::BatchMemory batch_;
};

}  // namespace kintsugi::tests

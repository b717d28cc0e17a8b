// Compares a layout with one rank: the same model, seed and samples on one rank, both in this process, step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/program/program.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::train {

struct CompareOptions {
  const config::Settings& settings;   // resolved, with a vocabulary
  const samples::SampleSource& data;  // sample n of the run; filled by several ranks at once
  int64_t steps = 3;
  double tolerance = 1e-9;       // of gradients, relative to the norm of all, times the number of the step
  double loss_tolerance = 1e-9;  // of losses, relative to themselves, times the number of the step
  std::function<void(program::Program&)> damage = {};  // changes the layout's program before it runs; for tests
  // Told what is under way: parts of a step, of all steps. By one thread.
  std::function<void(int64_t done, int64_t all)> progress = {};
};

// The largest rounding error of a gradient, in the dtype of training or in that in which gradients travel.
double default_tolerance(const config::Settings& settings);

// The settings of the run on one rank: passes of as many samples, or of one unit (reproducible).
config::Settings twin_of(config::Settings settings);

enum class Compared { loss, gradient, weight };
std::string_view name_of(Compared what);

// For one value in one step, the element that differs most, measured by its limit. The twin is the run on one rank.
// - loss: limit loss_tolerance x step x |loss|.
// - gradient: limit tolerance x step x N, N the norm of the twin's gradients.
// - weight: before the first step none may differ. Then the limit of an element is the change that gradients at their
//   limit can cause. AdamW divides a gradient by its own size: if v is the second moment, corrected, an error d of
//   gradients moves an element by at most learning_rate x min(2 R, (1 + R) d / (sqrt(v) + epsilon)), R the largest
//   possible step (models::Optimizer::reach). So an element whose gradient is nothing but rounding, such as that of a
//   key's bias, may be anywhere within its reach, and the others are held to the precision of their gradients. SGD:
//   learning_rate x d through the momentum. The rounding of the weight itself is added.
struct Difference {
  int64_t step = 0;  // from 1; 0: before the first
  Compared what = Compared::loss;
  std::string name = {};  // of the weight; empty for the loss
  int layer = 0;
  std::string element = {};  // "[embed:3 ffn:17]"
  int rank = 0;              // that differs most
  double value = 0, twin = 0;
  double limit = 0;  // of |value - twin|
  double scale = 0;  // loss: |loss|; gradient: N; weight: the largest limit of its elements

  double size() const;  // |value - twin|; infinite if only one of them is finite
  bool within() const { return size() <= limit; }
};

struct Comparison {
  std::string mesh;  // "data=2 tensor=2"
  int ranks = 0;
  int64_t steps = 0;
  // In the order in which a step computes them: the loss, gradients from the last layer to the first as the backward
  // pass completes them, weights. Before them all the weights of step 0.
  std::vector<Difference> differences;

  const Difference* first() const;  // that is not within its limit, or null
};

// UserError if the plan has one rank or does not fit the model, or if the loss of the twin is not finite.
Comparison compare(const CompareOptions& options);

// The table by step, the table by name, and the line that says where the first difference appears, or "the same".
std::string print(const Comparison& comparison);
// One row for each difference: step,what,layer,name,element,rank,value,one_rank,difference,limit,scale
std::string print_csv(const Comparison& comparison);

}  // namespace kintsugi::train

// Compares a layout with a single rank, step by step: the same model, seed and samples, both in this process.
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
  const samples::SampleSource& data;  // sample n of the run; used by several ranks concurrently
  int64_t steps = 3;
  double tolerance = 1e-9;       // for gradients, relative to the norm of all, times the step number
  double loss_tolerance = 1e-9;  // for losses, relative to themselves, times the step number
  std::function<void(program::Program&)> damage = {};  // modifies the layout's program before it runs; for tests
  // Called with the number of completed and of all parts of steps, by one thread.
  std::function<void(int64_t done, int64_t all)> progress = {};
};

// The largest expected rounding error of a gradient, in the training dtype or in the dtype of gradient communication.
double default_tolerance(const config::Settings& settings);

// The settings of the run on a single rank: passes of as many samples, or of one unit (reproducible).
config::Settings twin_of(config::Settings settings);

enum class Compared { loss, gradient, weight };
std::string_view name_of(Compared what);

// For one value in one step, the element with the largest difference relative to its limit. The twin is the run on a
// single rank.
//  - loss: limit loss_tolerance x step x |loss|.
//  - gradient: limit tolerance x step x N, N the norm of the twin's gradients.
//  - weight: before the first step none may differ. Afterwards the limit of an element is the change that gradients at
//    their limit can cause. AdamW normalizes gradients: with v the bias-corrected second moment, a gradient error d
//    moves an element by at most learning_rate x min(2 R, (1 + R) d / (sqrt(v) + epsilon)), R the largest possible step
//    (models::Optimizer::reach). An element whose gradient is only rounding error, such as a key's bias, may thus be
//    anywhere within its reach, and the others are held to the precision of their gradients. SGD: learning_rate x d,
//    through the momentum. The rounding of the weight itself is added.
struct Difference {
  int64_t step = 0;  // 1-based; 0: before the first
  Compared what = Compared::loss;
  std::string name = {};  // of the weight; empty for the loss
  int layer = 0;
  std::string element = {};  // "[embed:3 ffn:17]"
  int rank = 0;              // with the largest difference
  double value = 0, twin = 0;
  double limit = 0;  // for |value - twin|
  double scale = 0;  // loss: |loss|; gradient: N; weight: the largest limit of its elements

  double size() const;  // infinite if exactly one of them is finite
  bool within() const { return size() <= limit; }
};

struct Comparison {
  std::string mesh;  // "data=2 tensor=2"
  int ranks = 0;
  int64_t steps = 0;
  // In the order of computation: all weights at step 0; then per step the loss, gradients from the last layer to the
  // first, as the backward pass completes them, and weights.
  std::vector<Difference> differences;

  const Difference* first() const;  // first one beyond its limit, or null
};

// Throws UserError if the plan has one rank or does not fit the model, or if the loss of the twin is not finite.
Comparison compare(const CompareOptions& options);

// The table by step, the table by name, and a line that locates the first difference, or "the same".
std::string print(const Comparison& comparison);
// One row per difference: step,what,layer,name,element,rank,value,one_rank,difference,limit,scale
std::string print_csv(const Comparison& comparison);

}  // namespace kintsugi::train

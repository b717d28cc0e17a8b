// The optimizers, one row each: the operation that updates a weight, its states and its inputs.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/config/catalog.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

// A state with the weight's dims, in fp32 (fp64 for fp64), initialized to zero: the operand of that name, replaced by
// the output of the same name.
struct OptimizerState {
  std::string_view operand;  // "m"
  std::string_view suffix;   // suffix of its name, after the weight's: ".m"
  graph::OptimizerPart part = graph::OptimizerPart::other;
  // The dims it has: all of the weight's, or those of a matrix without its columns or its rows (graph::Matrix).
  enum class Dims : uint8_t { all, rows, columns } dims = Dims::all;
  bool narrow = false;  // in bf16
};

// The operation takes the operands `w`, the weight in fp32, `g`, its gradient, `factor`, which scales the gradient,
// `finite`, 0 to skip the update, and those of its states; also `updates`, the number of previous updates, if it has an
// operand of that name. Its outputs are `w`, the states, and optionally `weight`, the new weight in the dtype of the
// attribute "weight". It is elementwise (OpRow::flat). The attribute "weight_decay" is 0 for weights without decay.
//
// An update that is not elementwise is a chain: `operation`, then those of `then`. Each takes its operands by name from
// the above and from the outputs of earlier ones; an operand NAME_squares is the sum of the squares of NAME over the
// entire weight, in any layout, and NAME_sum its sum over the rows of a matrix. An operation that is not elementwise
// (as orthogonalize) has the dims of the weight, and its row names those that it needs whole. All take the same
// attributes, and ignore those of others.
struct Optimizer {
  config::Optimizer config;
  std::string_view operation;
  std::vector<OptimizerState> states;
  tensor::Attributes (*attributes)(const config::Train&);  // besides "weight_decay" and "weight"
  // The largest change of a weight in any of that many updates, in units of the learning rate, for optimizers that
  // normalize the gradient. Null: the change is proportional to the gradient.
  double (*reach)(const config::Train&, int64_t updates) = nullptr;
  std::vector<std::string_view> then = {};
  // For an optimizer of hidden matrices alone (graph::Matrix): the row that updates all other weights.
  std::string_view otherwise = {};
};

std::span<const Optimizer> optimizers();
// Throws UserError for an unknown name.
const Optimizer& optimizer(std::string_view name, std::span<const Optimizer> rows = optimizers());

// The largest change that AdamW makes to an element in any step up to `step` (from 1), in units of the learning rate:
// by Cauchy-Schwarz, with m and v as weighted sums of the same gradients.
double adamw_reach(double beta1, double beta2, int64_t step);

}  // namespace kintsugi::models

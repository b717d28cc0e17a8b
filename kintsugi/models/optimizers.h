// The optimizers, one row each: the operation that updates a weight, and what it keeps and is told.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/config/catalog.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

// A state of the weight's dims, in fp32 (fp64 with fp64), zero at first: the operand of that name, which the output of
// the same name replaces.
struct OptimizerState {
  std::string_view operand;  // "m"
  std::string_view suffix;   // of its name, after that of the weight: ".m"
  graph::OptimizerPart part = graph::OptimizerPart::other;
};

// The operation has the operands `w`, the weight in fp32, `g`, its gradient, `factor`, by which that is multiplied,
// `finite`, 0 where the update is skipped, and those of its states; `updates`, the count of updates before this one, if
// it has an operand of that name. Its outputs are `w`, the states, and optionally `weight`, the new weight in the dtype
// of the attribute "weight". It is elementwise (OpRow::flat). The attribute "weight_decay" is 0 for weights that do not
// decay.
struct Optimizer {
  config::Optimizer config;
  std::string_view operation;
  std::vector<OptimizerState> states;
  tensor::Attributes (*attributes)(const config::Train&);  // besides "weight_decay" and "weight"
  // The largest change of a weight in any of that many updates, in learning rates, where the optimizer divides the
  // gradient by its own size. Null: the change is proportional to the gradient.
  double (*reach)(const config::Train&, int64_t updates) = nullptr;
};

std::span<const Optimizer> optimizers();
// UserError for a name that is none of them.
const Optimizer& optimizer(std::string_view name, std::span<const Optimizer> rows = optimizers());

// The largest change that AdamW makes to an element in any step up to `step` (from 1), in learning rates: by Cauchy and
// Schwarz from m and v as weighted sums of the same gradients.
double adamw_reach(double beta1, double beta2, int64_t step);

}  // namespace kintsugi::models

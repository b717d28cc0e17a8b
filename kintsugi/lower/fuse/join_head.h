// Moves the vocabulary's loss next to its gradient, so that the logits are computed only once.
#pragma once

#include "kintsugi/graph/graph.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::lower {

// The micro-batch after differentiation, with `head` and the sums of its losses moved from the forward pass to the
// position of `head_grad`; both become one `head_with_grad`. If a rule splits the vocabulary, a position's gradient
// needs statistics of several ranks: then they stay separate, and the first keeps its logits for the second if the plan
// says so.
graph::Graph join_head(const graph::Graph& micro, const plan::Plan& plan);

}  // namespace kintsugi::lower

// The vocabulary's loss and its gradient beside each other, so that the logits are made once and not twice.
#pragma once

#include "kintsugi/graph/graph.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::lower {

// The micro-batch after differentiation, with `head` and what adds up its losses moved from the forward pass to where
// `head_grad` stands. Both become one `head_with_grad`. Where a rule splits the vocabulary, a position's gradient needs
// statistics of several ranks: there they stay two, and the first keeps its logits for the second if the plan says so.
graph::Graph join_head(const graph::Graph& micro, const plan::Plan& plan);

}  // namespace kintsugi::lower

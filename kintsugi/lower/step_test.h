// For tests of complete lowerings: graphs of a training step around a hand-written forward pass.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kintsugi/graph/differentiate.h"
#include "kintsugi/lower/lower.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower {

using graph::Graph;
using graph::StateId;
using graph::StateKind;
using graph::ValueId;

inline const tensor::Type kScalar = {tensor::Shape{}, tensor::DType::f64};

struct TestStep {
  const graph::OpTable& operations;
  graph::StateTable states;
  Graph micro{"micro-batch", operations, states};
  Graph update{"update", operations, states};
  Graph evaluate{"evaluate", operations, states};

  explicit TestStep(const graph::OpTable& table = ops::operations()) : operations(table) {}
  TestStep(const TestStep&) = delete;  // the graphs point to the states
  TestStep& operator=(const TestStep&) = delete;

  StateId weight(const std::string& name, tensor::Shape shape, int layer = 0) {
    return states.add({.name = name, .type = {std::move(shape), tensor::DType::f32}, .layer = layer, .decay = true});
  }

  // micro: the forward pass, its sum as loss, the gradients of all weights. update: SGD. evaluate: forward again.
  void finish(const std::function<ValueId(Graph&)>& forward) {
    const StateId loss = states.add({.name = "loss",
                                     .type = kScalar,
                                     .kind = StateKind::statistic,
                                     .layer = micro.layer,
                                     .saved = false,
                                     .parts = true});
    const auto pass = [&](Graph& g) {
      const ValueId sum = g.sum_to(forward(g), kScalar);
      g.accumulate(sum, loss);
      return sum;
    };
    const ValueId sum = pass(micro);
    std::vector<StateId> weights;
    graph::differentiate(micro, sum, micro.fill(1.0, kScalar), [&](const graph::StateGradient& found) {
      const graph::State weight = states[found.state];
      StateId to = states.gradient_of(found.state);
      if (to == graph::kNone) {
        to = states.add({.name = weight.name + ".gradient",
                         .type = weight.type,
                         .kind = StateKind::gradient,
                         .weight = found.state,
                         .layer = weight.layer});
        weights.push_back(found.state);
      }
      micro.accumulate(found.gradient, to);
    });
    update.phase = graph::Phase::update;
    const ValueId one = update.fill(1.0, kScalar);
    for (StateId w : weights) {
      const std::string name = states[w].name;
      update.layer = states[w].layer;
      const StateId m = states.add({.name = name + ".m",
                                    .type = states[w].type,
                                    .kind = StateKind::optimizer,
                                    .weight = w,
                                    .part = graph::OptimizerPart::first_moment,
                                    .layer = states[w].layer});
      const std::vector<ValueId> next =
          update.apply("sgd", {update.read(w), update.read(states.gradient_of(w)), update.read(m), one, one},
                       {{"momentum", 0.9}, {"weight_decay", 0.0}}, name);
      update.assign(next[0], w);
      update.assign(next[1], m);
    }
    pass(evaluate);
  }

  Source source(int64_t micro_batches = 2) const {
    return {.states = states,
            .micro = &micro,
            .update = &update,
            .passes = {{program::Work::evaluate, &evaluate}},
            .micro_batches = micro_batches};
  }
};

}  // namespace kintsugi::lower

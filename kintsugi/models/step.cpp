#include "kintsugi/models/step.h"

#include "kintsugi/graph/differentiate.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/update.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::models {

using graph::Phase;
using graph::State;
using graph::StateId;
using graph::StateKind;
using graph::StateTable;

namespace {

DType dtype_of(const config::Settings& s) {
  return tensor::dtype_from(s.train.dtype);
}

Graph empty(std::string name, const StateTable& states) {
  return Graph(std::move(name), ops::operations(), states);
}

// x [... embed] times the head, to dims `out`, in the wide dtype.
ValueId logits(Graph& g, const Trunk& trunk, ValueId x, std::string_view out) {
  const DType wide = graph::wide(g.type(x).dtype);
  const ValueId y = g.contract(x, trunk.head, out, wide);
  if (trunk.bias == graph::kNone) return y;
  const ValueId bias = g.type(trunk.bias).dtype == wide
                           ? trunk.bias
                           : g.op("cast", {trunk.bias}, {{"dtype", std::string(name_of(wide))}});
  return g.add({y, bias});
}

// The sum of the losses of a pass; sum and count are added to the states.
ValueId add_loss(Builder& b, const Trunk& trunk, StateId sum, StateId count) {
  Graph& g = b.graph();
  const ValueId labels = b.input("labels");
  const std::vector<ValueId> statistics = g.apply("head", {trunk.x, trunk.head, labels, trunk.bias});
  const std::vector<ValueId> loss = g.apply("cross_entropy", {statistics[0], statistics[1], labels}, {}, "loss");
  g.accumulate(loss[0], sum);
  g.accumulate(loss[1], count);
  return loss[0];
}

Graph evaluation_graph(const config::Settings& s, StateTable& states, int64_t batch, int64_t sequence) {
  Graph g = empty("evaluate", states);
  const Pass pass = {
      .purpose = Purpose::evaluate, .batch = batch, .sequence = sequence, .documents = s.data.reset_at_document};
  Builder b(g, states, s.model, pass, dtype_of(s));
  const Trunk trunk = family(s.model.family).build(b);
  add_loss(b, trunk, number(states, std::string(kEvaluateSum), 0.0, g.layer, false),
           number(states, std::string(kEvaluateCount), 0.0, g.layer, false));
  return g;
}

Graph generation_graph(const config::Settings& s, StateTable& states, const std::string& name, const Pass& pass) {
  Graph g = empty(name, states);
  Builder b(g, states, s.model, pass, dtype_of(s));
  const Trunk trunk = family(s.model.family).build(b);
  const ValueId x = g.op("take", {trunk.x});
  g.make("output", {logits(g, trunk, x, "batch vocab")}, {}, {{"name", "logits"}});
  return g;
}

}  // namespace

Graph build_forward(const config::Settings& s, StateTable& states, Logits kept) {
  Graph g = empty("micro-batch", states);
  const Pass pass = {.purpose = Purpose::train,
                     .batch = s.train.micro_batch * s.parallel.data,
                     .sequence = s.train.sequence,
                     .documents = s.data.reset_at_document};
  Builder b(g, states, s.model, pass, dtype_of(s));
  const Trunk trunk = family(s.model.family).build(b);
  const auto parts = [&](std::string_view name) {
    return states.add({.name = std::string(name),
                       .type = ops::scalar(),
                       .kind = StateKind::statistic,
                       .layer = g.layer,
                       .saved = false,
                       .parts = true});
  };
  const StateId sum = parts(kLossParts), count = parts(kCountParts);
  add_loss(b, trunk, sum, count);
  if (kept == Logits::kept) {
    const ValueId all = logits(g, trunk, trunk.x, "batch seq vocab");
    g.assign(all, states.add({.name = std::string(kLogits),
                              .type = g.type(all),
                              .kind = StateKind::statistic,
                              .layer = g.layer,
                              .saved = false}));
  }
  return g;
}

Graphs build_training(const config::Settings& s, Logits kept) {
  Graphs graphs;
  graphs.states = std::make_unique<StateTable>();
  StateTable& states = *graphs.states;
  Graph g = build_forward(s, states, kept);

  ValueId loss = graph::kNone;
  for (const graph::Op& op : g.ops())
    if (op.kind() == "cross_entropy") loss = op.outs[0];
  const bool scaled = s.train.dtype == "fp16";
  // The loss is summed over tokens, so that a scale of 2^16 over the mean is 2^16 / tokens over the sum; 64 is near
  // that for a thousand tokens, and the scale adapts in either direction.
  const ValueId seed =
      scaled ? g.read(number(states, std::string(kLossScale), 64.0, g.layer, true)) : g.fill(1.0, g.type(loss));
  differentiate(g, loss, seed, [&](const graph::StateGradient& found) {
    const State weight = states[found.state];
    StateId accumulator = states.gradient_of(found.state);
    if (accumulator == graph::kNone)
      accumulator = states.add({.name = weight.name + ".gradient",
                                .type = {weight.type.shape, graph::wide(weight.type.dtype)},
                                .kind = StateKind::gradient,
                                .weight = found.state,
                                .layer = weight.layer,
                                .saved = false});
    g.accumulate(found.gradient, accumulator);
  });
  graphs.micro = std::move(g);
  graphs.update = build_update(s.train, states);
  graphs.evaluate = evaluation_graph(s, states, s.train.micro_batch * s.parallel.data, s.train.sequence);
  return graphs;
}

Graphs build_evaluation(const config::Settings& s, int64_t batch, int64_t sequence) {
  Graphs graphs;
  graphs.states = std::make_unique<StateTable>();
  graphs.evaluate = evaluation_graph(s, *graphs.states, batch, sequence);
  return graphs;
}

Graphs build_generation(const config::Settings& s, int64_t batch, int64_t prompt, int64_t cache) {
  Graphs graphs;
  graphs.states = std::make_unique<StateTable>();
  graphs.prefill = generation_graph(s, *graphs.states, "prefill",
                                    {.purpose = Purpose::prefill, .batch = batch, .sequence = prompt, .cache = cache});
  graphs.decode = generation_graph(s, *graphs.states, "decode",
                                   {.purpose = Purpose::decode, .batch = batch, .sequence = 1, .cache = cache});
  return graphs;
}

}  // namespace kintsugi::models

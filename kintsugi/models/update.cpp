#include "kintsugi/models/update.h"

#include "kintsugi/base/error.h"
#include "kintsugi/models/step.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::models {

using graph::OptimizerPart;
using graph::State;
using graph::StateId;
using graph::StateKind;
using graph::StateTable;

namespace {

struct Parameter {
  StateId weight;
  StateId gradient;
};

std::string_view suffix_of(OptimizerPart part) {
  switch (part) {
    case OptimizerPart::master:
      return ".master";
    case OptimizerPart::first_moment:
      return ".m";
    case OptimizerPart::second_moment:
      return ".v";
    case OptimizerPart::none:
      break;
  }
  throw base::InternalError("models", "an optimizer's state that is none");
}

// The optimizer's state of that part for a weight. A master starts with its weight's initial values.
StateId add_part(StateTable& states, StateId of, OptimizerPart part) {
  const State weight = states[of];
  return states.add({.name = weight.name + std::string(suffix_of(part)),
                     .type = {weight.type.shape, graph::wide(weight.type.dtype)},
                     .kind = StateKind::optimizer,
                     .weight = of,
                     .part = part,
                     .layer = weight.layer,
                     .decay = weight.decay,
                     .init = part == OptimizerPart::master ? weight.init : Init{}});
}

}  // namespace

StateId number(StateTable& states, const std::string& name, double start, int layer, bool saved) {
  const StateId found = states.find(name);
  if (found != graph::kNone) return found;
  return states.add({.name = name,
                     .type = ops::scalar(),
                     .kind = StateKind::statistic,
                     .layer = layer,
                     .init = {Init::Kind::constant, start},
                     .saved = saved});
}

Graph build_update(const config::Train& train, StateTable& states) {
  Graph g("update", ops::operations(), states);
  g.phase = graph::Phase::update;
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < states.size(); ++i) {
    const auto id = static_cast<StateId>(i);
    const StateId gradient = states.gradient_of(id);
    if (states[id].kind == StateKind::weight && gradient != graph::kNone) parameters.push_back({id, gradient});
  }

  g.layer = -1;
  const bool scaled = states.find(kLossScale) != graph::kNone;
  const StateId scale_state = scaled ? states.find(kLossScale) : graph::kNone;
  const ValueId scale = scaled ? g.read(scale_state) : g.fill(1.0, ops::scalar());
  const ValueId tokens = g.read(states.find(kCountParts));
  g.assign(g.read(states.find(kLossParts)), number(states, std::string(kLossSum), 0.0, -1, false));
  g.assign(tokens, number(states, std::string(kLossCount), 0.0, -1, false));
  std::vector<ValueId> blocks, gradients;
  for (const Parameter& p : parameters) {
    g.layer = states[p.weight].layer;
    gradients.push_back(g.read(p.gradient));
    blocks.push_back(g.op("sum_squares", {gradients.back()}));
  }
  g.layer = -1;
  const ValueId squares = g.op("sum_blocks", blocks);
  const std::vector<ValueId> outcome = g.apply("update_scale", {tokens, scale, squares}, {{"clip", train.clip}});
  const ValueId factor = outcome[1], finite = outcome[2];
  const StateId count = number(states, std::string(kUpdates), 0.0, -1, true);
  const ValueId updates = g.read(count);
  g.assign(outcome[0], number(states, std::string(kGradientNorm), 0.0, -1, false));
  g.assign(finite, number(states, std::string(kFinite), 1.0, -1, false));

  for (size_t i = 0; i < parameters.size(); ++i) {
    const State weight = states[parameters[i].weight];
    g.layer = weight.layer;
    const bool narrow = weight.type.dtype != graph::wide(weight.type.dtype);
    const StateId master =
        narrow ? add_part(states, parameters[i].weight, OptimizerPart::master) : parameters[i].weight;
    tensor::Attributes attributes = {{"weight_decay", weight.decay ? train.weight_decay : 0.0}};
    if (narrow) attributes.set("weight", std::string(name_of(weight.type.dtype)));
    std::vector<StateId> targets = {master, add_part(states, parameters[i].weight, OptimizerPart::first_moment)};
    std::vector<ValueId> ins = {g.read(master), gradients[i], g.read(targets[1])};
    const bool adamw = train.optimizer == "adamw";
    if (adamw) {
      attributes.set("beta1", train.betas[0]);
      attributes.set("beta2", train.betas[1]);
      attributes.set("epsilon", train.epsilon);
      targets.push_back(add_part(states, parameters[i].weight, OptimizerPart::second_moment));
      ins.push_back(g.read(targets[2]));
    } else {
      attributes.set("momentum", train.momentum);
    }
    ins.insert(ins.end(), {factor, finite});
    if (adamw) ins.push_back(updates);
    if (narrow) targets.push_back(parameters[i].weight);
    const std::vector<ValueId> outs = g.apply(train.optimizer, ins, attributes, weight.name);
    for (size_t j = 0; j < outs.size(); ++j) g.assign(outs[j], targets[j]);
  }

  g.layer = -1;
  g.assign(g.add({updates, finite}), count);
  if (scaled) {
    const StateId good = number(states, "loss_scale.good", 0.0, -1, true);
    const std::vector<ValueId> next =
        g.apply("loss_scale", {finite, scale, g.read(good)}, {{"growth_interval", int64_t{2000}}});
    g.assign(next[0], scale_state);
    g.assign(next[1], good);
  }
  return g;
}

}  // namespace kintsugi::models

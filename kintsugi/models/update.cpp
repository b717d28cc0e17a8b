#include "kintsugi/models/update.h"

#include <map>
#include <string_view>
#include <utility>

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

// An optimizer state of a weight. A master weight is initialized as the weight is.
StateId add_state(StateTable& states, StateId of, const OptimizerState& row) {
  const State weight = states[of];
  return states.add({.name = weight.name + std::string(row.suffix),
                     .type = {weight.type.shape, graph::wide(weight.type.dtype)},
                     .kind = StateKind::optimizer,
                     .weight = of,
                     .part = row.part,
                     .layer = weight.layer,
                     .decay = weight.decay,
                     .init = row.part == OptimizerPart::master ? weight.init : Init{}});
}

constexpr OptimizerState kMaster = {"w", ".master", OptimizerPart::master};

// Common to all weights of an update.
struct Shared {
  ValueId factor, finite, updates;
};

void update_weight(Graph& g, StateTable& states, const Parameter& p, ValueId gradient, const Shared& shared,
                   const Optimizer& optimizer, const config::Train& train) {
  const State weight = states[p.weight];
  const bool narrow = weight.type.dtype != graph::wide(weight.type.dtype);
  tensor::Attributes attributes = {{"weight_decay", weight.decay ? train.weight_decay : 0.0}};
  if (narrow) attributes.set("weight", std::string(name_of(weight.type.dtype)));
  const tensor::Attributes own = optimizer.attributes(train);
  for (const auto& [name, value] : own.list()) attributes.set(name, value);
  std::map<std::string_view, StateId> of;  // by operand
  of["w"] = narrow ? add_state(states, p.weight, kMaster) : p.weight;
  for (const OptimizerState& row : optimizer.states) of[row.operand] = add_state(states, p.weight, row);
  const std::map<std::string_view, ValueId> given = {
      {"g", gradient}, {"factor", shared.factor}, {"finite", shared.finite}, {"updates", shared.updates}};
  const graph::OpRow& row = g.table().find(optimizer.operation);
  std::vector<ValueId> ins;
  for (const tensor::Operand& operand : row.ins) {
    const auto state = of.find(operand.name);
    ins.push_back(state == of.end() ? given.at(operand.name) : g.read(state->second));
  }
  const std::vector<ValueId> outs = g.apply(optimizer.operation, std::move(ins), attributes, weight.name);
  if (narrow) of["weight"] = p.weight;
  for (size_t i = 0; i < outs.size(); ++i) g.assign(outs[i], of.at(row.outs[i].name));
}

// Load balancing: updates the experts' biases from the token counts of the whole step, and its metric.
void update_experts(Graph& g, const config::Train& train, StateTable& states, ValueId finite) {
  std::vector<ValueId> busiest, loads;
  const size_t count = states.size();
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<StateId>(i);
    const State state = states[id];
    if (!state.name.ends_with(kExpertLoad)) continue;
    g.layer = state.layer;
    const ValueId load = g.read(id);
    loads.push_back(load);
    busiest.push_back(g.op("expert_balance", {load}));
    const std::string name = state.name.substr(0, state.name.size() - kExpertLoad.size()) + std::string(kRouterBias);
    if (const StateId bias = states.find(name); bias != graph::kNone)
      g.assign(g.op("balance_bias", {g.read(bias), load, finite}, {{"rate", train.balance_rate}}), bias);
  }
  if (busiest.empty()) return;
  g.layer = -1;
  const ValueId mean = g.scale(g.add(busiest), 1.0 / static_cast<double>(busiest.size()));
  g.assign(mean, number(states, std::string(kExpertBalance), 0.0, -1, false));
  g.assign(g.add(loads), states.add({.name = std::string(kExpertTokens),
                                     .type = g.type(loads.front()),
                                     .kind = StateKind::statistic,
                                     .layer = -1,
                                     .saved = false}));
}

// Sums each further loss over the step, as a number of its name.
void add_further_losses(Graph& g, StateTable& states) {
  std::map<std::string, std::vector<ValueId>> parts;
  for (size_t i = 0; i < states.size(); ++i)
    if (const std::string_view name = further_loss_of(states[static_cast<StateId>(i)]); !name.empty())
      parts[std::string(name)].push_back(g.read(static_cast<StateId>(i)));
  for (const auto& [name, values] : parts)
    g.assign(g.add(values), number(states, std::string(kFurtherLoss) + name, 0.0, -1, false));
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

Graph build_update(const config::Train& train, StateTable& states, const Optimizer& optimizer,
                   const graph::OpTable& operations) {
  Graph g("update", operations, states);
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
  add_further_losses(g, states);
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
    g.layer = states[parameters[i].weight].layer;
    update_weight(g, states, parameters[i], gradients[i], {factor, finite, updates}, optimizer, train);
  }

  update_experts(g, train, states, finite);
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

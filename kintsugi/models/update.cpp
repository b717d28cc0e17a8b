#include "kintsugi/models/update.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/models/optimizer_rows.h"
#include "kintsugi/models/step.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/state_blocks.h"

namespace kintsugi::models {

using graph::OptimizerPart;
using graph::State;
using graph::StateId;
using graph::StateKind;
using graph::StateTable;
using tensor::Shape;

namespace {

struct Parameter {
  StateId weight;
  StateId gradient;
};

constexpr OptimizerState kMaster = {"w", ".master", OptimizerPart::master},
                         kAverage = {"average", ".average", OptimizerPart::average};

// The dims that the matrices of a weight consist of, and their sides.
struct Sides {
  Shape batch, rows, columns;
};
Sides sides_of(const Shape& shape, graph::Matrix matrix) {
  std::vector<tensor::Dim> batch, rows, columns;
  for (size_t i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<int>(i);
    (at < matrix.batch ? batch : at < matrix.batch + matrix.rows ? rows : columns).push_back(shape[i]);
  }
  return {Shape(batch), Shape(rows), Shape(columns)};
}

Shape joined(const Shape& a, const Shape& b) {
  std::vector<tensor::Dim> dims = a.dims();
  dims.insert(dims.end(), b.dims().begin(), b.dims().end());
  return Shape(dims);
}

// An optimizer state of a weight. A master weight and a moving average are initialized as the weight is. A state of the
// rows or columns of a matrix shares no bucket with its weight.
StateId add_state(StateTable& states, StateId of, const OptimizerState& row, bool codes = false,
                  graph::Matrix matrix = {}) {
  using Dims = OptimizerState::Dims;
  const State weight = states[of];
  const Sides sides = sides_of(weight.type.shape, matrix);
  Shape shape = weight.type.shape;
  if (row.dims == Dims::rows || row.dims == Dims::columns)
    shape = joined(sides.batch, row.dims == Dims::rows ? sides.rows : sides.columns);
  if (is_scale(row)) shape = tensor::scales_of(shape);
  const tensor::DType dtype = codes        ? tensor::DType::u8
                              : row.narrow ? tensor::DType::bf16
                                           : graph::wide(weight.type.dtype);
  const bool in_bucket = row.dims == Dims::all;
  const bool is_copy = row.part == OptimizerPart::master || row.part == OptimizerPart::average;
  return states.add({.name = weight.name + std::string(row.suffix),
                     .type = {shape, dtype},
                     .kind = StateKind::optimizer,
                     .weight = in_bucket ? of : graph::kNone,
                     .part = row.part,
                     .layer = weight.layer,
                     .decay = weight.decay,
                     .init = is_copy ? weight.init : Init{}});
}

// Common to all weights of an update.
struct Shared {
  ValueId factor, finite, updates;
};

// The update of one weight: the operations of its optimizer, whose operands are found by name.
class WeightUpdate {
 public:
  // Whether this optimizer updates the weight, and not the one to which it leaves all but matrices.
  static bool updates(const Optimizer& optimizer, const State& weight) {
    if (optimizer.otherwise.empty()) return true;
    return has_codes(optimizer) ? weight.decay : matrix_of(optimizer, weight).rows > 0;
  }

  WeightUpdate(Graph& g, StateTable& states, StateId weight, const Optimizer& optimizer, const config::Train& train)
      : g_(g),
        states_(states),
        weight_(weight),
        own_(states[weight]),
        matrix_(matrix_of(optimizer, own_)),
        optimizer_(updates(optimizer, own_) ? optimizer : fallback_of(optimizer)),
        train_(train) {}

  void run(ValueId gradient, const Shared& shared) {
    const bool narrow = own_.type.dtype != graph::wide(own_.type.dtype);
    of_["w"] = narrow ? add_state(states_, weight_, kMaster) : weight_;
    for (const OptimizerState& row : optimizer_.states)

      of_[std::string(row.operand)] = add_state(states_, weight_, row, has_codes(optimizer_, row), matrix_);
    values_ = {{"g", gradient}, {"factor", shared.factor}, {"finite", shared.finite}, {"updates", shared.updates}};
    if (narrow) of_["weight"] = weight_;
    const tensor::Attributes attributes = attributes_of(narrow);
    std::vector<std::string_view> chain = {optimizer_.operation};
    chain.insert(chain.end(), optimizer_.then.begin(), optimizer_.then.end());
    for (const std::string_view operation : chain) apply(operation, attributes);
    if (train_.ema_decay > 0) {
      of_["average"] = add_state(states_, weight_, kAverage);
      apply("moving_average", {{"ema_decay", train_.ema_decay}});
    }
    if (needs_whole_) states_.set_alone(weight_);
  }

 private:
  // Factored states exist for every matrix, other optimizers of matrices for those of layers. A bias or the gain of a
  // norm may have two dims (heads), but is a vector.
  static graph::Matrix matrix_of(const Optimizer& optimizer, const State& weight) {
    const bool factored = std::ranges::any_of(
        optimizer.states, [](const OptimizerState& s) { return s.dims == OptimizerState::Dims::rows; });
    if (factored && weight.matrix.rows == 0 && weight.decay && weight.type.shape.rank() > 1)
      return {.batch = 0, .rows = static_cast<int>(weight.type.shape.rank()) - 1};  // of a convolution: its inputs
    return weight.matrix;
  }

  tensor::Attributes attributes_of(bool narrow) {
    tensor::Attributes attributes = {{"weight_decay", own_.decay ? train_.weight_decay : 0.0}};
    if (narrow) attributes.set("weight", std::string(name_of(own_.type.dtype)));
    const tensor::Attributes of_row = optimizer_.attributes(train_);
    for (const auto& [name, value] : of_row.list()) attributes.set(name, value);
    if (own_.rate != 1.0) attributes.set("rate", own_.rate);
    const std::string norms = attributes.text_or("norms", "");
    has_norms_ = norms == "all" || (norms == "decayed" && own_.decay);
    if (optimizer_.otherwise.empty() || has_codes(optimizer_)) {
      if (norms == "all") attributes.set("elements", own_.type.shape.elements());
      return attributes;
    }
    const Sides sides = sides_of(own_.type.shape, matrix_);
    attributes.set("matrix_batch", int64_t{matrix_.batch});
    attributes.set("matrix_rows", int64_t{matrix_.rows});
    attributes.set("rows", sides.rows.elements());
    attributes.set("columns", sides.columns.elements());
    attributes.set("elements", own_.type.shape.elements());
    if (attributes.integer_or("whole_matrix", 0) != 0)
      attributes.set("whole", tensor::names(joined(sides.rows, sides.columns)));
    return attributes;
  }

  void apply(std::string_view operation, tensor::Attributes attributes) {
    const graph::OpRow& row = g_.table().find(operation);
    needs_whole_ |= !row.flat;
    if (row.flat && attributes.has("whole")) attributes = without_whole(attributes);
    std::vector<ValueId> ins;
    for (const tensor::Operand& operand : row.ins) ins.push_back(find(operand));
    const std::vector<ValueId> outs = g_.apply(operation, std::move(ins), attributes, own_.name);
    for (size_t i = 0; i < outs.size(); ++i) {
      const std::string_view name = row.outs[i].name;
      values_[std::string(name)] = outs[i];
      if (const auto state = of_.find(name); state != of_.end()) g_.assign(outs[i], state->second);
    }
  }

  static tensor::Attributes without_whole(const tensor::Attributes& all) {
    tensor::Attributes attributes;
    for (const auto& [name, value] : all.list())
      if (name != "whole") attributes.set(name, value);
    return attributes;
  }

  ValueId find(const tensor::Operand& operand) {
    constexpr std::string_view kSquares = "_squares", kSum = "_sum";
    const std::string name(operand.name);
    if (name.ends_with(kSquares)) {
      if (!has_norms_) return graph::kNone;
      needs_whole_ = true;
      const ValueId x = value(name.substr(0, name.size() - kSquares.size()));
      return g_.op("sum_blocks", {g_.op("sum_squares", {x})});
    }
    if (name.ends_with(kSum)) {
      const ValueId x = value(name.substr(0, name.size() - kSum.size()));
      return g_.sum_to(x, {sides_of(own_.type.shape, matrix_).batch, g_.type(x).dtype});
    }
    return value(name);
  }

  ValueId value(const std::string& name) {
    const auto made = values_.find(name);
    if (made != values_.end()) return made->second;
    return values_[name] = g_.read(of_.at(name));
  }

  Graph& g_;
  StateTable& states_;
  StateId weight_;
  State own_;
  graph::Matrix matrix_;
  const Optimizer& optimizer_;
  const config::Train& train_;
  std::map<std::string, StateId, std::less<>> of_;      // by operand
  std::map<std::string, ValueId, std::less<>> values_;  // the newest of that name
  bool has_norms_ = false, needs_whole_ = false;
};

// Load balancing: the token counts of the whole step update the experts' biases, are kept for the next step's loss, and
// make the metrics.
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
    const std::string layer = state.name.substr(0, state.name.size() - kExpertLoad.size());
    if (const StateId previous = states.find(layer + std::string(kPreviousLoad)); previous != graph::kNone)
      g.assign(load, previous);
    if (const StateId bias = states.find(layer + std::string(kRouterBias)); bias != graph::kNone)
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

// The means over the step of what batch norms in groups computed update their running statistics.
void update_norms(Graph& g, StateTable& states) {
  const size_t count = states.size();
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<StateId>(i);
    const std::string name = states[id].name;
    if (!name.ends_with(kGroupMoments)) continue;
    g.layer = states[id].layer;
    const std::string norm = name.substr(0, name.size() - kGroupMoments.size());
    const StateId mean = states.find(norm + std::string(kRunningMean)),
                  variance = states.find(norm + std::string(kRunningVariance));
    const std::vector<ValueId> now =
        g.apply("running_moments", {g.read(mean), g.read(variance), g.read(id)}, {{"momentum", kNormMomentum}});
    g.assign(now[0], mean);
    g.assign(now[1], variance);
  }
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

// The sum of each measurement over the step, likewise.
void add_measured(Graph& g, StateTable& states) {
  const size_t count = states.size();
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<StateId>(i);
    const std::string name = states[id].name;
    if (!name.starts_with(kMeasuredParts)) continue;
    g.assign(g.read(id), number(states, std::string(kMeasured) + name.substr(kMeasuredParts.size()), 0.0, -1, false));
  }
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
  add_measured(g, states);
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

  if (!optimizer.otherwise.empty() && std::ranges::none_of(parameters, [&](const Parameter& p) {
        return WeightUpdate::updates(optimizer, states[p.weight]);
      }))
    throw base::UserError("model",
                          "train.optimizer = \"{}\" updates matrices, and no weight that is trained is one; \"{}\" "
                          "updates all weights",
                          optimizer.config.name, "adamw");
  for (size_t i = 0; i < parameters.size(); ++i) {
    g.layer = states[parameters[i].weight].layer;
    WeightUpdate(g, states, parameters[i].weight, optimizer, train).run(gradients[i], {factor, finite, updates});
  }

  update_experts(g, train, states, finite);
  update_norms(g, states);
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

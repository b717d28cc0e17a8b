#include "kintsugi/graph/graph.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::graph {

using tensor::Attributes;
using tensor::DType;
using tensor::Shape;
using tensor::Type;

DType wide(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 ? DType::f32 : dtype;
}

StateId StateTable::add(State state) {
  base::require(find(state.name) == kNone, "graph", "state \"{}\" stands twice", state.name);
  states_.push_back(std::move(state));
  return static_cast<StateId>(states_.size()) - 1;
}

StateId StateTable::find(std::string_view name) const {
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i].name == name) return static_cast<StateId>(i);
  return kNone;
}

StateId StateTable::gradient_of(StateId weight) const {
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i].kind == StateKind::gradient && states_[i].weight == weight) return static_cast<StateId>(i);
  return kNone;
}

std::vector<ValueId> Graph::make(std::string_view kind, std::vector<ValueId> ins, std::vector<Type> outs,
                                 Attributes attributes, std::string_view name) {
  Op op;
  op.row = &table_->find(kind);
  op.ins = std::move(ins);
  op.attributes = std::move(attributes);
  op.phase = phase;
  op.layer = layer;
  const std::string base = name.empty() ? std::string(kind) : std::string(name);
  for (size_t i = 0; i < outs.size(); ++i) {
    op.outs.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back(
        {outs.size() == 1 ? base : base + "." + std::to_string(i), std::move(outs[i]), static_cast<int>(ops_.size())});
  }
  ops_.push_back(std::move(op));
  return ops_.back().outs;
}

std::vector<ValueId> Graph::apply(std::string_view kind, std::vector<ValueId> ins, Attributes attributes,
                                  std::string_view name) {
  const OpRow& row = table_->find(kind);
  base::require(row.infer != nullptr, "graph", "the outputs of {} do not follow from its operands", kind);
  std::vector<Type> types;
  for (ValueId v : ins) types.push_back(type(v));
  std::vector<Type> outs = row.infer(types, attributes);
  return make(kind, std::move(ins), std::move(outs), std::move(attributes), name);
}

ValueId Graph::op(std::string_view kind, std::vector<ValueId> ins, Attributes attributes, std::string_view name) {
  const std::vector<ValueId> outs = apply(kind, std::move(ins), std::move(attributes), name);
  base::require(outs.size() == 1, "graph", "{} has {} outputs", kind, outs.size());
  return outs[0];
}

ValueId Graph::input(std::string_view name, Type type) {
  return make("input", {}, {std::move(type)}, {{"name", std::string(name)}}, name)[0];
}

ValueId Graph::fill(double value, Type type) {
  return make("fill", {}, {std::move(type)}, {{"value", value}})[0];
}

ValueId Graph::read(StateId state) {
  const State& s = (*states_)[state];
  const ValueId v = make("state", {}, {s.type}, {}, s.name)[0];
  ops_.back().state = state;
  return v;
}

void Graph::accumulate(ValueId value, StateId state) {
  make("accumulate", {value}, {});
  ops_.back().state = state;
}

void Graph::assign(ValueId value, StateId state) {
  make("assign", {value}, {});
  ops_.back().state = state;
}

ValueId Graph::add(std::vector<ValueId> values) {
  return values.size() == 1 ? values[0] : op("add", std::move(values));
}

ValueId Graph::scale(ValueId x, double by) {
  return op("scale", {x}, {{"by", by}});
}

ValueId Graph::sum_to(ValueId x, const Type& to) {
  return type(x) == to ? x : make("sum", {x}, {to})[0];
}

ValueId Graph::contract(ValueId a, ValueId b, std::string_view dims, DType dtype) {
  return op("contract", {a, b}, {{"dims", std::string(dims)}, {"dtype", std::string(tensor::name_of(dtype))}});
}

ValueId Graph::rename(ValueId x, std::string_view from, std::string_view to) {
  return op("rename", {x}, {{"from", std::string(from)}, {"to", std::string(to)}}, value(x).name);
}

Type Graph::gradient_type(ValueId x) const {
  Type t = type(x);
  const Op& op = ops_[static_cast<size_t>(value(x).op)];
  if (op.state != kNone && (*states_)[op.state].kind == StateKind::weight) t.dtype = wide(t.dtype);
  return t;
}

}  // namespace kintsugi::graph

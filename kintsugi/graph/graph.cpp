#include "kintsugi/graph/graph.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

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
  const auto id = static_cast<StateId>(states_.size());
  base::require(by_name_.emplace(state.name, id).second, "graph", "state \"{}\" exists twice", state.name);
  if (state.kind == StateKind::gradient && state.weight != kNone) gradients_.emplace(state.weight, id);
  states_.push_back(std::move(state));
  return id;
}

StateId StateTable::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNone : found->second;
}

StateId StateTable::gradient_of(StateId weight) const {
  const auto found = gradients_.find(weight);
  return found == gradients_.end() ? kNone : found->second;
}

void StateTable::set_rate(StateId weight, double rate) {
  base::require(states_[static_cast<size_t>(weight)].kind == StateKind::weight, "graph",
                "the learning rate of a state that is not a weight");
  states_[static_cast<size_t>(weight)].rate = rate;
}

void StateTable::set_alone(StateId weight) {
  base::require(states_[static_cast<size_t>(weight)].kind == StateKind::weight, "graph",
                "a bucket of a state that is not a weight");
  states_[static_cast<size_t>(weight)].alone = true;
}

void StateTable::set_matrix(StateId weight, Matrix matrix) {
  base::require(states_[static_cast<size_t>(weight)].kind == StateKind::weight, "graph",
                "a matrix in a state that is not a weight");
  states_[static_cast<size_t>(weight)].matrix = matrix;
}

void StateTable::freeze(StateId weight) {
  State& s = states_[static_cast<size_t>(weight)];
  base::require(s.kind == StateKind::weight && gradient_of(weight) == kNone, "graph", "\"{}\" cannot be frozen",
                s.name);
  s.frozen = true;
}

namespace {

// The present entries of `given`, a list by position, and the mask of the row's names that are absent.
template <typename T, typename Has>
std::pair<std::vector<T>, uint32_t> there(const OpRow& row, std::string_view what, const OperandList& list,
                                          const std::vector<T>& given, const Has& has) {
  std::vector<T> kept;
  kept.reserve(given.size());
  uint32_t absent = 0;
  for (size_t i = 0; i < std::max(given.size(), list.size()); ++i) {
    const size_t last = list.has_rest() ? std::min(i, list.size() - 1) : i;
    if (last >= list.size())
      throw base::InternalError("graph", "{} has no {} {}; it has {}", row.kind, what, i, to_string(list));
    const tensor::Operand& o = list[last];
    if (i < given.size() && has(given[i])) {
      kept.push_back(given[i]);
    } else if (o.optional) {
      absent |= 1u << i;
    } else {
      base::require(o.rest && i >= given.size(), "graph", "{} lacks its {} \"{}\"", row.kind, what, o.name);
    }
  }
  return {std::move(kept), absent};
}

}  // namespace

ValueId Op::in(std::string_view name) const {
  const std::optional<size_t> place = row->ins.place(name, absent.ins);
  return place ? ins[*place] : kNone;
}

ValueId Op::out(std::string_view name) const {
  const std::optional<size_t> place = row->outs.place(name, absent.outs);
  return place ? outs[*place] : kNone;
}

std::vector<ValueId> Op::by_position(std::span<const ValueId> list) const {
  return tensor::by_position(list, absent.ins, kNone);
}

std::vector<ValueId> Graph::make(std::string_view kind, std::vector<ValueId> ins, const OutTypes& outs,
                                 Attributes attributes, std::string_view name) {
  Op op;
  op.row = &table_->find(kind);
  std::tie(op.ins, op.absent.ins) = there(*op.row, "operand", op.row->ins, ins, [](ValueId v) { return v != kNone; });
  const OperandList made = op.row->effect ? OperandList() : op.row->outs;
  const auto [types, absent] =
      there(*op.row, "output", made, outs.list(), [](const OutTypes::One& o) { return o.type.has_value(); });
  op.absent.outs = absent;
  op.attributes = std::move(attributes);
  op.phase = phase;
  op.layer = layer;
  const std::string base = name.empty() ? std::string(kind) : std::string(name);
  for (size_t i = 0; i < types.size(); ++i) {
    op.outs.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back(
        {types.size() == 1 ? base : base + "." + std::to_string(i), *types[i].type, static_cast<int>(ops_.size())});
  }
  ops_.push_back(std::move(op));
  return ops_.back().outs;
}

std::vector<ValueId> Graph::apply(std::string_view kind, std::vector<ValueId> ins, Attributes attributes,
                                  std::string_view name) {
  const OpRow& row = table_->find(kind);
  base::require(row.infer != nullptr, "graph", "the outputs of {} do not follow from its operands", kind);
  const auto [present, absent] = there(row, "operand", row.ins, ins, [](ValueId v) { return v != kNone; });
  std::vector<Type> types;
  for (ValueId v : present) types.push_back(type(v));
  const OutTypes outs = row.infer({row.ins, types, absent}, attributes);
  return make(kind, std::move(ins), outs, std::move(attributes), name);
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

std::vector<ValueId> Graph::prune(size_t first, std::vector<ValueId> wanted) {
  size_t tail = values_.size();  // the first value that these operations produce
  while (tail > 0 && values_[tail - 1].op >= static_cast<int>(first)) --tail;
  const auto begin = static_cast<ValueId>(tail);
  std::vector<bool> needed(values_.size() - tail, false);
  const auto need = [&](ValueId v) {
    if (v >= begin) needed[static_cast<size_t>(v - begin)] = true;
  };
  const auto is_needed = [&](ValueId v) { return needed[static_cast<size_t>(v - begin)]; };
  for (const ValueId v : wanted) need(v);
  std::vector<bool> kept(ops_.size() - first);
  for (size_t i = ops_.size(); i-- > first;) {
    const Op& op = ops_[i];
    kept[i - first] = op.row->effect || std::any_of(op.outs.begin(), op.outs.end(), is_needed);
    if (kept[i - first])
      for (const ValueId v : op.ins) need(v);
  }
  std::vector<Op> ops(std::make_move_iterator(ops_.begin() + static_cast<std::ptrdiff_t>(first)),
                      std::make_move_iterator(ops_.end()));
  std::vector<Value> values(std::make_move_iterator(values_.begin() + begin), std::make_move_iterator(values_.end()));
  ops_.resize(first);
  values_.resize(tail);
  std::vector<ValueId> new_ids(values.size(), kNone);
  const auto now = [&](ValueId v) { return v < begin ? v : new_ids[static_cast<size_t>(v - begin)]; };
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!kept[i]) continue;
    Op& op = ops[i];
    for (ValueId& v : op.ins) v = now(v);
    const uint32_t absent = op.absent.outs;
    std::vector<ValueId> outs;
    for (size_t o = 0; o < op.outs.size(); ++o) {
      const size_t position = tensor::position_of(o, absent);
      const tensor::Operand& output = op.row->outs[position];
      if (!is_needed(op.outs[o]) && output.optional && std::ranges::count(op.row->made_together, output.name) == 0) {
        op.absent.outs |= 1u << position;
        continue;
      }
      const auto old = static_cast<size_t>(op.outs[o] - begin);
      outs.push_back(new_ids[old] = static_cast<ValueId>(values_.size()));
      values_.push_back(std::move(values[old]));
      values_.back().op = static_cast<int>(ops_.size());
    }
    op.outs = std::move(outs);
    ops_.push_back(std::move(op));
  }
  for (ValueId& v : wanted)
    if (v != kNone) v = now(v);
  return wanted;
}

Type Graph::gradient_type(ValueId x) const {
  Type t = type(x);
  const Op& op = ops_[static_cast<size_t>(value(x).op)];
  if (op.state != kNone && (*states_)[op.state].kind == StateKind::weight) t.dtype = wide(t.dtype);
  return t;
}

}  // namespace kintsugi::graph

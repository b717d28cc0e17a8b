#include "kintsugi/plan/model_dims.h"

#include <algorithm>
#include <set>
#include <string>

namespace kintsugi::plan {
namespace {

using graph::Graph;
using graph::Op;
using graph::StateKind;
using graph::ValueId;
using tensor::Dim;
using tensor::Shape;

constexpr StateKind kKinds[] = {StateKind::weight, StateKind::gradient, StateKind::optimizer, StateKind::cache,
                                StateKind::statistic};
constexpr StateKind kInBuckets[] = {StateKind::weight, StateKind::gradient, StateKind::optimizer};

template <typename List, typename T>
bool has(const List& list, const T& x) {
  return std::find(std::begin(list), std::end(list), x) != std::end(list);
}

// Rules about states govern their reads and updates; free operations are materialized in any layout.
bool named_by_rules(const Op& op) {
  return op.state == graph::kNone && !op.row->effect && !op.row->free;
}

// Dims are interned by name and size, so that a set of dims is a sorted list of numbers.
using Set = std::vector<int>;

bool within(const Set& a, const Set& b) {
  return std::includes(b.begin(), b.end(), a.begin(), a.end());
}

class Collector {
 public:
  void look_at(const Graph& g) {
    for (const Op& op : g.ops()) {
      for (ValueId v : op.outs) know(g.shape(v));
      if (named_by_rules(op) && !has(model_.operations, op.row)) model_.operations.push_back(op.row);
      if (!is_forward(op)) continue;
      for (const auto* values : {&op.ins, &op.outs})
        for (ValueId v : *values)
          if (!is_state(g, v)) activations_.insert(set_of(g.shape(v).dims()));
    }
  }

  void find_places(const Graph& g) {
    for (const Op& op : g.ops())
      if (is_forward(op) && is_wide(g, op)) add_place(op.row->rule_family(), splittable(g, op));
  }

  void look_at(const graph::StateTable& states) {
    for (const graph::State& s : states) know(s.type.shape);
    for (StateKind kind : kInBuckets)
      for (const graph::State& s : states)
        if (s.kind == kind && s.type.shape.rank() > 0) add_place(name_of(kind), s.type.shape.dims());
  }

  ModelDims result() {
    for (const Found& place : places_) {
      const auto wider = [&](const Found& p) {
        return p.family == place.family && p.set != place.set && within(place.set, p.set);
      };
      if (std::any_of(places_.begin(), places_.end(), wider)) continue;
      model_.places.push_back({place.family, {}});
      for (int i : place.order) model_.places.back().dims.push_back(interned_[static_cast<size_t>(i)]);
    }
    return std::move(model_);
  }

 private:
  struct Found {
    std::string_view family;
    Set set;
    std::vector<int> order;  // in the operation's order
  };

  static bool is_forward(const Op& op) {
    return named_by_rules(op) && op.phase == graph::Phase::forward && !op.row->view;
  }

  // Not produced by the pass: a state, or one modified in place.
  static bool is_state(const Graph& g, ValueId v) {
    const Op& maker = g.op_at(static_cast<size_t>(g.value(v).op));
    return maker.state != graph::kNone || maker.row->must_share;
  }

  void know(const Shape& shape) {
    for (const Dim& d : shape)
      if (std::none_of(model_.dims.begin(), model_.dims.end(), [&](const Dim& e) { return e.name == d.name; }))
        model_.dims.push_back(d);
  }

  std::vector<int> numbers_of(const std::vector<Dim>& dims) {
    std::vector<int> list;
    for (const Dim& d : dims) {
      const auto at = std::find(interned_.begin(), interned_.end(), d);
      list.push_back(static_cast<int>(at - interned_.begin()));
      if (at == interned_.end()) interned_.push_back(d);
    }
    return list;
  }

  Set set_of(const std::vector<Dim>& dims) {
    Set set = numbers_of(dims);
    std::sort(set.begin(), set.end());
    return set;
  }

  // Whether it reads or produces one of the widest activations, whose dims are no proper subset of another's.
  bool is_wide(const Graph& g, const Op& op) {
    for (const auto* values : {&op.ins, &op.outs})
      for (ValueId v : *values)
        if (!is_state(g, v) && is_widest(set_of(g.shape(v).dims()))) return true;
    return false;
  }

  bool is_widest(const Set& set) const {
    return std::none_of(activations_.begin(), activations_.end(),
                        [&](const Set& other) { return other != set && within(set, other); });
  }

  // The dims of its operands and outputs, except those it requires whole and those aliased to others.
  static std::vector<Dim> splittable(const Graph& g, const Op& op) {
    std::vector<std::string> left_out = tensor::words(op.attributes.text_or("whole", ""));
    left_out.insert(left_out.end(), op.row->whole.begin(), op.row->whole.end());
    for (const auto& [out, in] : op.row->alias) left_out.emplace_back(out);
    std::vector<Dim> dims;
    for (const auto* values : {&op.ins, &op.outs})
      for (ValueId v : *values)
        for (const Dim& d : g.shape(v))
          if (!has(dims, d) && !has(left_out, d.name)) dims.push_back(d);
    return dims;
  }

  void add_place(std::string_view family, const std::vector<Dim>& dims) {
    const Set set = set_of(dims);
    const auto known = [&](const Found& p) { return p.family == family && p.set == set; };
    if (std::none_of(places_.begin(), places_.end(), known)) places_.push_back({family, set, numbers_of(dims)});
  }

  ModelDims model_;
  std::vector<Dim> interned_;
  std::set<Set> activations_;
  std::vector<Found> places_;
};

}  // namespace

ModelDims dims_of(std::span<const Graph* const> graphs) {
  Collector collector;
  for (const Graph* g : graphs) collector.look_at(*g);
  for (const Graph* g : graphs) collector.find_places(*g);
  if (!graphs.empty()) collector.look_at(graphs[0]->states());
  return collector.result();
}

void forget_size(ModelDims& model, std::string_view dim) {
  const auto forget = [&](std::vector<Dim>& dims) {
    for (Dim& d : dims)
      if (d.name == dim) d.size = 0;
  };
  forget(model.dims);
  for (Place& place : model.places) forget(place.dims);
}

std::vector<std::string_view> families(const ModelDims& model) {
  std::vector<std::string_view> list;
  for (const graph::OpRow* row : model.operations)
    if (!has(list, row->rule_family()) && !is_kind_of_state(row->rule_family())) list.push_back(row->rule_family());
  for (StateKind kind : kKinds) list.push_back(name_of(kind));
  return list;
}

bool is_kind_of_state(std::string_view family) {
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](StateKind kind) { return name_of(kind) == family; });
}

bool has_flat(std::string_view family) {
  return std::any_of(std::begin(kInBuckets), std::end(kInBuckets),
                     [&](StateKind kind) { return name_of(kind) == family; });
}

}  // namespace kintsugi::plan

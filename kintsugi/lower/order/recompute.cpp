#include "kintsugi/lower/order/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/graph/copy.h"

namespace kintsugi::lower {

using graph::Graph;
using graph::kNone;
using graph::Op;
using graph::Phase;
using graph::ValueId;

namespace {

bool is_state(const Op& op) {
  return op.role() == graph::Role::read_state;
}

// Free and independent of other values: an input, a constant.
bool is_given(const Op& op) {
  return op.row->free && op.ins.empty();
}

// Decides which operations are repeated, and before which operation each layer's are inserted.
class RecomputeChooser {
 public:
  RecomputeChooser(const Graph& g, const Recompute& how, int layers)
      : g_(g), how_(how), layers_(layers), repeated_(g.ops().size(), false), crosses_(g.values().size(), false) {
    for (const Op& op : g.ops()) {
      if (op.state != kNone && !is_state(op)) written_.insert(op.state);
      for (ValueId v : op.ins) crosses_[at(v)] = crosses_[at(v)] || maker(v).layer != op.layer;
    }
    choose();
    place();
  }

  // Whether the backward pass reads a repetition of the value.
  bool again(ValueId v) const { return repeated_[static_cast<size_t>(g_.value(v).op)] && !crosses_[at(v)]; }
  // The layer's operations to insert before operation i, in order.
  const std::vector<size_t>& before(size_t i) const {
    static const std::vector<size_t> none;
    const auto found = before_.find(i);
    return found == before_.end() ? none : found->second;
  }

 private:
  static size_t at(ValueId v) { return static_cast<size_t>(v); }
  const Op& maker(ValueId v) const { return g_.op_at(static_cast<size_t>(g_.value(v).op)); }

  bool may_repeat(const Op& op) const {
    if (op.phase != Phase::forward || op.layer < 0 || op.layer >= layers_ || op.layer % how_.every != 0) return false;
    if (is_state(op) || is_given(op) || op.row->effect || op.row->must_share) return false;
    if (how_.what == Recompute::What::light && !op.row->light) return false;
    if (how_.what == Recompute::What::selective && !op.row->selective) return false;
    return std::none_of(op.ins.begin(), op.ins.end(),
                        [&](ValueId v) { return is_state(maker(v)) && written_.contains(maker(v).state); });
  }

  // From the last operation to the first: what the backward pass and repeated operations need.
  void choose() {
    std::vector<bool> needed(g_.values().size(), false);
    for (size_t i = g_.ops().size(); i-- > 0;) {
      const Op& op = g_.op_at(i);
      const auto asked = [&](ValueId v) { return needed[at(v)] && !crosses_[at(v)]; };
      repeated_[i] = may_repeat(op) && std::any_of(op.outs.begin(), op.outs.end(), asked);
      if (repeated_[i] || op.phase != Phase::forward)
        for (ValueId v : op.ins) needed[at(v)] = true;
    }
  }

  void place() {
    std::map<int, size_t> first;  // by layer
    for (size_t i = 0; i < g_.ops().size(); ++i) {
      const Op& op = g_.op_at(i);
      if (op.phase == Phase::forward) continue;
      const bool reads = std::any_of(op.ins.begin(), op.ins.end(), [&](ValueId v) { return again(v); });
      if (reads || how_.what == Recompute::What::full) first.try_emplace(op.layer, i);
    }
    for (size_t i = 0; i < g_.ops().size(); ++i)
      if (repeated_[i]) before_[first.at(g_.op_at(i).layer)].push_back(i);
  }

  const Graph& g_;
  const Recompute& how_;
  int layers_;
  std::vector<bool> repeated_;        // [operation]
  std::vector<bool> crosses_;         // [value]: another layer reads it
  std::set<graph::StateId> written_;  // by this graph
  std::map<size_t, std::vector<size_t>> before_;
};

// Rewrites a graph, operation by operation.
class RecomputeWriter {
 public:
  explicit RecomputeWriter(const Graph& from)
      : from_(from),
        to_(from.name(), from.table(), from.states()),
        now_(from.values().size(), kNone),
        again_(from.values().size(), kNone) {}

  void write(const Op& op) {
    const std::vector<ValueId> outs = append(op, op.phase, {});
    for (size_t i = 0; i < outs.size(); ++i) now_[static_cast<size_t>(op.outs[i])] = outs[i];
  }

  void repeat(const Op& op, const RecomputeChooser& chosen) {
    const std::vector<ValueId> outs = append(op, Phase::backward, ".again");
    for (size_t i = 0; i < outs.size(); ++i)
      if (chosen.again(op.outs[i])) again_[static_cast<size_t>(op.outs[i])] = outs[i];
  }

  Graph finish() {
    to_.phase = from_.phase;
    to_.layer = from_.layer;
    return std::move(to_);
  }

 private:
  ValueId operand(ValueId v, Phase phase) const {
    const auto i = static_cast<size_t>(v);
    return phase != Phase::forward && again_[i] != kNone ? again_[i] : now_[i];
  }

  std::vector<ValueId> append(const Op& op, Phase phase, std::string_view mark) {
    to_.phase = phase;
    to_.layer = op.layer;
    std::vector<ValueId> ins;
    for (ValueId v : op.ins) ins.push_back(operand(v, phase));
    return graph::append_copy(to_, from_, op, std::move(ins), mark);
  }

  const Graph& from_;
  Graph to_;
  std::vector<ValueId> now_, again_;  // [value of `from_`]: copies in `to_`
};

}  // namespace

Graph recompute(Graph micro, const Recompute& how, int layers) {
  base::require(how.every > 0, "recompute", "every {} layers", how.every);
  if (how.what == Recompute::What::none) return micro;
  const RecomputeChooser chosen(micro, how, layers);
  RecomputeWriter writer(micro);
  for (size_t i = 0; i < micro.ops().size(); ++i) {
    for (size_t j : chosen.before(i)) writer.repeat(micro.op_at(j), chosen);
    writer.write(micro.op_at(i));
  }
  return writer.finish();
}

std::vector<ValueId> kept(const Graph& g) {
  std::set<ValueId> all;
  // A view is replaced by what it views; a free value is rematerialized from what it depends on.
  const auto keep = [&](const auto& self, ValueId v) -> void {
    const Op& maker = g.op_at(static_cast<size_t>(g.value(v).op));
    if (maker.phase != Phase::forward || is_state(maker)) return;
    if (!maker.row->view && !maker.row->free) {
      all.insert(v);
      return;
    }
    for (ValueId in : maker.ins) self(self, in);
  };
  for (const Op& op : g.ops())
    if (op.phase != Phase::forward)
      for (ValueId v : op.ins) keep(keep, v);
  return {all.begin(), all.end()};
}

}  // namespace kintsugi::lower

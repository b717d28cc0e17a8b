#include "kintsugi/lower/fuse/join_head.h"

#include <algorithm>

#include "kintsugi/graph/copy.h"
#include "kintsugi/plan/by_rules.h"

namespace kintsugi::lower {

using graph::Graph;
using graph::kNone;
using graph::Op;
using graph::Phase;
using graph::ValueId;

namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

// Whether a rule assigns a factor to the dim that the head sums over, its vocabulary.
bool splits_vocabulary(const plan::Plan& plan, const Graph& g, const Op& head) {
  std::vector<tensor::Dim> dims;
  for (ValueId v : head.ins)
    for (const tensor::Dim& d : g.shape(v).dims())
      if (std::count(head.row->whole.begin(), head.row->whole.end(), d.name) == 0) dims.push_back(d);
  std::vector<mesh::Factor> taken;
  const plan::Splits splits = plan::by_rules(plan, head.row->rule_family(), dims, taken);
  return std::any_of(splits.begin(), splits.end(), [&](const auto& s) {
    return std::none_of(head.outs.begin(), head.outs.end(), [&](ValueId v) { return g.shape(v).has(s.first); });
  });
}

size_t place_of(const Graph& g, std::string_view kind) {
  for (size_t i = 0; i < g.ops().size(); ++i)
    if (g.op_at(i).kind() == kind) return i;
  return kNowhere;
}

// The operations in [first, end) that depend on it, excluding itself.
std::vector<size_t> followers(const Graph& g, size_t first, size_t end) {
  std::vector<bool> follows(g.values().size(), false);
  std::vector<size_t> found;
  for (size_t i = first; i < end; ++i) {
    const Op& op = g.op_at(i);
    const auto reads = [&](ValueId v) { return follows[static_cast<size_t>(v)]; };
    if (i != first && std::none_of(op.ins.begin(), op.ins.end(), reads)) continue;
    if (i != first) found.push_back(i);
    for (ValueId v : op.outs) follows[static_cast<size_t>(v)] = true;
  }
  return found;
}

class Writer {
 public:
  explicit Writer(const Graph& from)
      : from_(from), to_(from.name(), from.table(), from.states()), now_(from.values().size(), kNone) {}

  void stand_at(const Op& op) {
    to_.phase = op.phase;
    to_.layer = op.layer;
  }
  void copy(const Op& op) { become(op.outs, graph::append_copy(to_, from_, op, operands(op))); }

  void write_as_one(const Op& head, const Op& gradient) {
    std::vector<ValueId> outs = {head.out("lse"), head.out("target")};
    graph::OutTypes made(types(outs));
    const graph::OutTypes of_gradient = graph::out_types(from_, gradient);
    for (const graph::OutTypes::One& one : of_gradient.list()) made.add(one);
    outs.insert(outs.end(), gradient.outs.begin(), gradient.outs.end());
    become(outs, to_.make("head_with_grad", operands(gradient, {"x", "table", "labels", "bias", "dlse", "dtarget"}),
                          made, head.attributes));
  }

  void write_both(const Op& head, const Op& gradient, bool keep) {
    if (!keep) return copy(head), copy(gradient);
    const tensor::Type lse = from_.type(head.out("lse")), target = from_.type(head.out("target"));
    std::vector<tensor::Dim> dims = lse.shape.dims();
    dims.push_back(from_.shape(head.in("table"))[0]);
    const std::vector<ValueId> outs =
        to_.make("head", operands(head), {lse, target, {tensor::Shape(dims), lse.dtype}}, head.attributes);
    become(head.outs, std::span(outs).first(2));
    std::vector<ValueId> ins = operands(gradient, {"x", "table", "labels", "bias", "lse", "dlse", "dtarget"});
    ins.push_back(outs[2]);  // logits
    become(gradient.outs,
           to_.make("head_grad", std::move(ins), graph::out_types(from_, gradient), gradient.attributes));
  }

  Graph finish() {
    to_.phase = from_.phase;
    to_.layer = from_.layer;
    return std::move(to_);
  }

 private:
  std::vector<ValueId> operands(const Op& op) const {
    std::vector<ValueId> ins;
    for (ValueId v : op.ins) ins.push_back(now_[static_cast<size_t>(v)]);
    return ins;
  }
  // kNone for absent ones.
  std::vector<ValueId> operands(const Op& op, std::initializer_list<std::string_view> names) const {
    std::vector<ValueId> ins;
    for (std::string_view name : names) {
      const ValueId v = op.in(name);
      ins.push_back(v == kNone ? kNone : now_[static_cast<size_t>(v)]);
    }
    return ins;
  }
  std::vector<tensor::Type> types(std::span<const ValueId> values) const {
    std::vector<tensor::Type> list;
    for (ValueId v : values) list.push_back(from_.type(v));
    return list;
  }
  void become(std::span<const ValueId> values, std::span<const ValueId> made) {
    for (size_t i = 0; i < made.size(); ++i) now_[static_cast<size_t>(values[i])] = made[i];
  }

  const Graph& from_;
  Graph to_;
  std::vector<ValueId> now_;  // [value of `from_`]: its copy in `to_`
};

}  // namespace

Graph join_head(const Graph& micro, const plan::Plan& plan) {
  const size_t head = place_of(micro, "head"), gradient = place_of(micro, "head_grad");
  if (head == kNowhere || gradient == kNowhere) return micro;
  const std::vector<size_t> moved = followers(micro, head, gradient);
  for (size_t i : moved)
    if (micro.op_at(i).phase != Phase::forward) return micro;  // an input of the gradient depends on the loss
  const bool splits = splits_vocabulary(plan, micro, micro.op_at(head));
  Writer writer(micro);
  for (size_t i = 0; i < micro.ops().size(); ++i) {
    const Op& op = micro.op_at(i);
    if (i == head || std::find(moved.begin(), moved.end(), i) != moved.end()) continue;
    writer.stand_at(op);
    if (i != gradient) {
      writer.copy(op);
      continue;
    }
    if (splits) {
      writer.write_both(micro.op_at(head), op, plan.keep_logits);
    } else {
      writer.write_as_one(micro.op_at(head), op);
    }
    for (size_t j : moved) writer.copy(micro.op_at(j));
  }
  return writer.finish();
}

}  // namespace kintsugi::lower

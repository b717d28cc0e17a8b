// Sums of several operands, emitted as several operations if that reduces communication.
#include <algorithm>

#include "kintsugi/lower/partition/partitioner.h"

namespace kintsugi::lower {

using graph::Op;

// The stage on which the sum takes a value: the sum's own if the value is available there.
int Partitioner::stage_of(Id v, const Op& op) const {
  const int here = emit_.stages().stage(op.layer);
  if (!layout_of(v)) return here;
  const std::vector<Piece>& pieces = value(v).pieces;
  const bool has =
      pieces.empty() || std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.stage == here; });
  return has ? here : pieces[0].stage;
}

Partitioner::Id Partitioner::add_partial_sum(const Op& op, const tensor::Type& type) {
  values_.push_back({value(op.outs[0]).name + ".part", type, nullptr, {}});
  return static_cast<Id>(values_.size()) - 1;
}

// Adds operands first that are partial over the same factors and on one stage, so that each group is reduced and sent
// once.
std::vector<Op> Partitioner::in_groups(const Op& op, BodyId body) {
  struct Group {
    std::vector<mesh::Part> partial;
    int stage;
    std::vector<Id> members;
  };
  std::vector<Group> groups;
  const int here = emit_.stages().stage(op.layer);
  for (Id v : op.ins) {
    show_stored(v, body);
    const std::optional<Layout> l = layout_of(v);
    const std::vector<mesh::Part> partial = l ? l->partial() : std::vector<mesh::Part>();
    const int stage = stage_of(v, op);
    auto g = std::find_if(groups.begin(), groups.end(),
                          [&](const Group& known) { return known.partial == partial && known.stage == stage; });
    if (g == groups.end()) g = groups.insert(groups.end(), {partial, stage, {}});
    g->members.push_back(v);
  }
  // Values of one layer are added there, and those of another stage on that stage, which sends only the sum: the bits
  // are then independent of how stages are cut.
  const auto add_there = [&](Op& sum, const std::vector<Id>& of, int stage) {
    // With several chunks per stage, in the chunk of the value that is produced last.
    const int latest = layer_of(*std::ranges::max_element(of)), first = layer_of(of[0]);
    const int layer = emit_.stages().chunk(first) == emit_.stages().chunk(latest) ? first : latest;
    const bool of_layer = std::ranges::all_of(of, [&](Id v) { return layer_of(v) == layer; });
    if (of.size() > 1 && emit_.stages().stage(layer) == stage && (of_layer || stage != here)) sum.layer = layer;
  };
  Op rest = op;
  if (std::ranges::all_of(groups, [&](const Group& g) { return g.stage == groups[0].stage; }))
    add_there(rest, op.ins, groups[0].stage);
  if (groups.size() == 1) return {rest};
  std::vector<Op> parts;
  rest.ins.clear();
  for (auto& [partial, stage, members] : groups) {
    if ((partial.empty() && stage == emit_.stages().stage(rest.layer)) || members.size() == 1) {
      rest.ins.insert(rest.ins.end(), members.begin(), members.end());
      continue;
    }
    // The sum of a group has the dims of its largest member.
    std::stable_sort(members.begin(), members.end(),
                     [&](Id a, Id b) { return value(a).type.shape.rank() > value(b).type.shape.rank(); });
    Op part = op;
    add_there(part, members, stage);
    part.ins = members;
    const tensor::Type type = value(members[0]).type;
    part.outs = {add_partial_sum(op, type)};
    rest.ins.push_back(part.outs[0]);
    parts.push_back(std::move(part));
  }
  parts.push_back(std::move(rest));
  return parts;
}

// An ordered sum moves to its operands, from stage to stage.
std::vector<Op> Partitioner::in_order_of_stages(const Op& op, BodyId body) {
  std::vector<Op> parts;
  int stage = -1;
  for (Id v : op.ins) {
    show_stored(v, body);
    const int now = stage_of(v, op);
    if (now != stage) {
      Op part = op;
      part.ins.clear();
      part.layer = layer_of(v);
      if (!parts.empty()) {
        const tensor::Type type = value(op.outs[0]).type;
        parts.back().outs = {add_partial_sum(op, type)};
        part.ins = parts.back().outs;
      }
      parts.push_back(std::move(part));
    }
    stage = now;
    parts.back().ins.push_back(v);
  }
  return parts;
}

}  // namespace kintsugi::lower

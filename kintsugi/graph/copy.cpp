#include "kintsugi/graph/copy.h"

#include "kintsugi/base/error.h"

namespace kintsugi::graph {

std::vector<ValueId> append_copy(Graph& to, const Graph& from, const Op& op, std::vector<ValueId> ins,
                                 std::string_view mark) {
  if (op.state != kNone) {
    if (op.role() == Role::read_state) return {to.read(op.state)};
    base::require(op.role() == Role::accumulate || op.role() == Role::assign, "graph", "a copy of {} of a state",
                  op.kind());
    op.role() == Role::assign ? to.assign(ins[0], op.state) : to.accumulate(ins[0], op.state);
    return {};
  }
  std::string name = op.outs.empty() ? std::string() : from.value(op.outs[0]).name;
  if (op.outs.size() > 1) name.resize(name.rfind('.'));  // "NAME.0"
  return to.make(op.kind(), op.by_position(ins), out_types(from, op), op.attributes, name.append(mark));
}

OutTypes out_types(const Graph& from, const Op& op) {
  OutTypes types;
  for (ValueId v : tensor::by_position(std::span<const ValueId>(op.outs), op.absent.outs, kNone))
    types.add(v == kNone ? OutTypes::One(kAbsent) : from.type(v));
  return types;
}

}  // namespace kintsugi::graph

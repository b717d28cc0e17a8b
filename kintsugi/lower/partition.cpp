#include "kintsugi/lower/partition.h"

#include <map>

#include "kintsugi/base/error.h"

namespace kintsugi::lower {

using graph::Graph;
using graph::Op;
using graph::StateId;
using graph::ValueId;
using program::Body;
using program::BufferId;
using program::Instruction;
using program::Program;
using program::Region;

namespace {

class Partitioner {
 public:
  Partitioner(Program& p, const graph::StateTable& states) : p_(p), states_(states) {}

  void run(const Graph& g, bool at_position) {
    graph_ = &g;
    place_.assign(g.values().size(), program::kNoBuffer);
    inputs_.clear();
    Body body;
    for (const Op& op : g.ops()) {
      const std::string name = op.phase == graph::Phase::update    ? "update"
                               : g.name() != "micro-batch"         ? g.name()
                               : op.phase == graph::Phase::forward ? "forward"
                                                                   : "backward";
      if (body.name != name) {
        if (!body.name.empty()) p_.bodies.push_back(std::move(body));
        body = {.name = name, .at_position = at_position, .instructions = {}};
      }
      take(op, body);
    }
    p_.bodies.push_back(std::move(body));
  }

 private:
  void take(const Op& op, Body& body) {
    if (op.kind() == "state") {
      place_[index(op.outs[0])] = storage(op.state);
    } else if (op.kind() == "input") {
      place_[index(op.outs[0])] = input(op);
    } else if (op.kind() == "output") {
      p_.buffer(at(op.ins[0])).output = op.attributes.text("name");
    } else if (op.kind() == "accumulate" || op.kind() == "assign") {
      const BufferId to = storage(op.state);
      if (p_.root(at(op.ins[0])) == to) return;  // written in place already
      emit(op, body, {at(op.ins[0])}, {to}, "accumulate", op.kind() == "accumulate" ? 1 : 0);
    } else {
      std::vector<BufferId> ins, outs;
      for (ValueId v : op.ins) ins.push_back(at(v));
      const bool shares = op.row->view || op.row->must_share;
      for (ValueId v : op.outs) outs.push_back(make(v, shares ? ins[0] : program::kNoBuffer));
      if (!op.row->view) emit(op, body, std::move(ins), std::move(outs), std::string(op.kind()), 0);
    }
  }

  void emit(const Op& op, Body& body, std::vector<BufferId> ins, std::vector<BufferId> outs, std::string kernel,
            uint32_t accumulate) {
    std::vector<tensor::Type> in_types, out_types;
    for (BufferId b : ins) in_types.push_back(p_.buffer(b).type);
    for (BufferId b : outs) out_types.push_back(p_.buffer(b).type);
    const graph::Cost c = graph::cost(*op.row, in_types, out_types, op.attributes);
    body.instructions.push_back({.kernel = std::move(kernel),
                                 .ins = std::move(ins),
                                 .outs = std::move(outs),
                                 .attributes = op.attributes,
                                 .accumulate = accumulate,
                                 .layer = op.layer,
                                 .phase = std::string(name_of(op.phase)),
                                 .flops = c.flops,
                                 .bytes = c.bytes});
  }

  BufferId make(ValueId v, BufferId same_as) {
    const graph::Value& value = graph_->value(v);
    return place_[index(v)] = add({.name = value.name, .type = value.type, .same_as = same_as});
  }

  BufferId input(const Op& op) {
    const std::string& name = op.attributes.text("name");
    if (!inputs_.count(name)) inputs_[name] = add({.name = name, .type = graph_->type(op.outs[0]), .input = name});
    return inputs_[name];
  }

  BufferId storage(StateId id) {
    const graph::State& s = states_[id];
    if (const program::StateInfo* found = p_.state(s.name)) return found->buffer;
    constexpr std::string_view inits[] = {"constant", "normal", "copy"};
    const BufferId b = add({.name = s.name, .type = s.type, .region = Region::state});
    p_.states.push_back({.name = s.name,
                         .buffer = b,
                         .kind = std::string(name_of(s.kind)),
                         .whole = s.type,
                         .layer = s.layer,
                         .init = std::string(inits[static_cast<size_t>(s.init.kind)]),
                         .init_value = s.init.value,
                         .init_source = s.init.source,
                         .saved = s.saved});
    return b;
  }

  BufferId add(program::Buffer b) {
    p_.buffers.push_back(std::move(b));
    return static_cast<BufferId>(p_.buffers.size()) - 1;
  }

  BufferId at(ValueId v) const {
    base::require(place_[index(v)] != program::kNoBuffer, "partition", "%{} is used before it is made", v);
    return place_[index(v)];
  }

  static size_t index(ValueId v) { return static_cast<size_t>(v); }

  Program& p_;
  const graph::StateTable& states_;
  const Graph* graph_ = nullptr;
  std::vector<BufferId> place_;             // of each value of the graph
  std::map<std::string, BufferId> inputs_;  // of the graph
};

}  // namespace

void partition(Program& p, const Source& source, const plan::Plan& plan) {
  if (plan.mesh.ranks() != 1)
    throw base::UserError("partition", "a mesh of {} ranks; this build trains on one: set [parallel] ranks = 1",
                          plan.mesh.ranks());
  Partitioner partitioner(p, source.states);
  for (const Graph* g : {source.micro, source.update, source.evaluate})
    if (g) partitioner.run(*g, false);
  for (const Graph* g : {source.prefill, source.decode})
    if (g) partitioner.run(*g, true);
}

}  // namespace kintsugi::lower

#include "kintsugi/graph/print.h"

#include <fmt/format.h>

namespace kintsugi::graph {

std::string print(const Graph& graph) {
  std::string text = fmt::format("graph {}\n", graph.name());
  Phase phase = Phase::forward;
  int layer = -1000;
  for (const Op& op : graph.ops()) {
    if (op.phase != phase || op.layer != layer) {
      phase = op.phase;
      layer = op.layer;
      text += fmt::format(" {} layer {}\n", name_of(phase), layer);
    }
    std::string outs, ins;
    for (ValueId v : op.outs) {
      const Value& value = graph.value(v);
      outs += fmt::format("{}%{} {}{} {}", outs.empty() ? "" : ", ", v, value.name, to_string(value.type.shape),
                          tensor::name_of(value.type.dtype));
    }
    for (ValueId v : op.ins) ins += fmt::format("{}%{}", ins.empty() ? "" : ", ", v);
    std::string attributes = to_string(op.attributes);
    if (op.state != kNone) attributes += (attributes.empty() ? "" : " ") + graph.states()[op.state].name;
    text += fmt::format("  {}{}{}({}){}{}\n", outs, outs.empty() ? "" : " = ", op.kind(), ins,
                        attributes.empty() ? "" : "  ", attributes);
  }
  return text;
}

std::string print(const StateTable& states) {
  std::string text = "states\n";
  for (const State& s : states) {
    const std::string init = s.init.kind == Init::Kind::constant ? fmt::format("{}", s.init.value)
                                                                 : fmt::format("normal {:.6g}", s.init.value);
    text += fmt::format("  {} {}{} {}  layer {}, begins at {}{}\n", name_of(s.kind), s.name, to_string(s.type.shape),
                        tensor::name_of(s.type.dtype), s.layer, init, s.decay ? ", decays" : "");
  }
  return text;
}

}  // namespace kintsugi::graph

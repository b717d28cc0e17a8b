// For tests of passes: programs made by hand, and bodies as short text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

using program::BufferId;
using tensor::DType;
using tensor::Shape;
using tensor::Type;

struct Maker {
  program::Program p;

  BufferId arena(const std::string& name, Shape shape, DType dtype = DType::f32) {
    p.buffers.push_back({.name = name, .type = {std::move(shape), dtype}});
    return static_cast<BufferId>(p.buffers.size()) - 1;
  }
  BufferId state(const std::string& name, Shape shape, const std::string& kind = "weight", DType dtype = DType::f32) {
    const BufferId b = arena(name, std::move(shape), dtype);
    p.buffer(b).region = program::Region::state;
    p.states.push_back({.name = name, .buffer = b, .kind = kind, .whole = p.buffer(b).type, .init = "constant"});
    return b;
  }
  BufferId view(const std::string& name, BufferId of) {
    p.buffers.push_back({.name = name, .type = p.buffer(of).type, .region = p.buffer(of).region, .same_as = of});
    return static_cast<BufferId>(p.buffers.size()) - 1;
  }
  void body(const std::string& name) { p.bodies.push_back({.name = name, .instructions = {}}); }
  program::Instruction& call(const std::string& kernel, std::vector<BufferId> ins, std::vector<BufferId> outs,
                             int layer = 0, uint32_t accumulate = 0) {
    p.bodies.back().instructions.push_back({.kernel = kernel,
                                            .ins = std::move(ins),
                                            .outs = std::move(outs),
                                            .attributes = {},
                                            .accumulate = accumulate,
                                            .layer = layer,
                                            .phase = "forward"});
    return p.bodies.back().instructions.back();
  }
};

// "forward:\n  y = contract(x, w)\n  +g = accumulate(dy)\n"
inline std::string text(const program::Program& p) {
  std::string t;
  for (const program::Body& body : p.bodies) {
    t += body.name + ":\n";
    for (const program::Instruction& i : body.instructions) {
      std::string outs, ins;
      for (size_t j = 0; j < i.outs.size(); ++j)
        outs += fmt::format("{}{}{}", j ? ", " : "", (i.accumulate >> j) & 1u ? "+" : "", p.buffer(i.outs[j]).name);
      for (BufferId b : i.ins) ins += (ins.empty() ? "" : ", ") + p.buffer(b).name;
      t += fmt::format("  {} = {}({})\n", outs, i.kernel, ins);
    }
  }
  return t;
}

}  // namespace kintsugi::lower

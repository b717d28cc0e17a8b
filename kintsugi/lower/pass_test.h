// For tests of passes: hand-written programs, layouts from text, and bodies as short text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kintsugi/ops/rows.h"
#include "kintsugi/program/by_name_test.h"

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
  BufferId state(const std::string& name, Shape shape, program::StateKind kind = program::StateKind::weight,
                 DType dtype = DType::f32) {
    const BufferId b = arena(name, std::move(shape), dtype);
    p.buffer(b).region = program::Region::state;
    p.states.push_back({.name = name, .buffer = b, .kind = kind, .whole = p.buffer(b).type});
    return b;
  }
  BufferId view(const std::string& name, BufferId of) {
    p.buffers.push_back({.name = name, .type = p.buffer(of).type, .region = p.buffer(of).region, .same_as = of});
    return static_cast<BufferId>(p.buffers.size()) - 1;
  }
  void body(const std::string& name) {
    p.bodies.push_back({.name = name, .instructions = {}, .work = program::work_named(name)});
  }
  program::Instruction& call(const std::string& kernel, std::vector<BufferId> ins, std::vector<BufferId> outs,
                             int layer = 0, uint32_t accumulate = 0) {
    program::Instruction& made = add(
        {.kernel = kernel, .ins = std::move(ins), .outs = std::move(outs), .accumulate = accumulate, .layer = layer});
    for (const graph::OpRow& row : ops::operations().rows())  // trailing optional ones are absent
      if (row.kind == kernel)
        made.absent = {row.ins.absent_behind(made.ins.size()), row.outs.absent_behind(made.outs.size())};
    return made;
  }
  program::Instruction& collective(program::Collective kind, std::vector<BufferId> ins, std::vector<BufferId> outs,
                                   int layer = 0) {
    return add({.kind = program::Kind::collective,
                .collective = kind,
                .ins = std::move(ins),
                .outs = std::move(outs),
                .layer = layer});
  }
  program::Instruction& add(program::Instruction i) {
    p.bodies.back().instructions.push_back(std::move(i));
    return p.bodies.back().instructions.back();
  }
};

// "batch/data, sum over tensor": as mesh::to_string has it. Factors that cut a dim: "seq/context tensor.0".
inline mesh::Layout layout_of(const mesh::Mesh& mesh, const std::string& text) {
  mesh::Layout l;
  for (size_t begin = 0; begin < text.size() && text != "whole";) {
    const size_t end = std::min(text.find(", ", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (const size_t over = word.find(" over "); over != std::string::npos) {
      for (mesh::Combiner c : {mesh::Combiner::sum, mesh::Combiner::max, mesh::Combiner::logsumexp})
        if (word.substr(0, over) == tensor::name_of(c))
          for (mesh::Factor f : mesh.expand(tensor::words(word.substr(over + 6)))) l.set_part(f, c);
    } else {
      const size_t slash = word.find('/');
      l.set(word.substr(0, slash), mesh.expand(tensor::words(word.substr(slash + 1))));
    }
    begin = end + 2;
  }
  return l;
}

// "forward:\n  y = contract(x, w)\n  +g = accumulate(dy)\n  z = all_reduce over data(y)\n  wait z = all_reduce(y)\n"
inline std::string text(const program::Program& p) {
  std::string t;
  for (const program::Body& body : p.bodies) {
    t += body.name + ":\n";
    for (const program::Instruction& i : body.instructions) {
      std::string outs, ins;
      for (size_t j = 0; j < i.outs.size(); ++j)
        outs += fmt::format("{}{}{}", j ? ", " : "", (i.accumulate >> j) & 1u ? "+" : "", p.buffer(i.outs[j]).name);
      for (BufferId b : i.ins) ins += (ins.empty() ? "" : ", ") + p.buffer(b).name;
      const bool starts = i.kind == program::Kind::collective, waits = i.kind == program::Kind::wait;
      t += fmt::format("  {}{} = {}{}({})\n", waits ? "wait " : "", outs, name_of(i),
                       starts ? " over " + p.mesh.name_of(i.group) : "", ins);
    }
  }
  return t;
}

}  // namespace kintsugi::lower

#include "kintsugi/simulate/work.h"

#include "kintsugi/program/walk.h"
#include "kintsugi/simulate/kernel_kind.h"

namespace kintsugi::simulate {

using program::Instruction;
using program::Program;

namespace {

// The part of an instruction's FLOPs that belongs to the forward pass.
double forward_flops(const program::Body& body, const Instruction& i) {
  if (kind_of(i) == KernelKind::head_with_grad) return i.cost.flops / 3;
  return body.does(program::Work::forward) && i.kind == program::Kind::compute ? i.cost.flops : 0;
}

// Of a body, on one rank.
Work of_body(const program::Body& body) {
  Work w;
  for (const Instruction& i : body.instructions) {
    const double forward = forward_flops(body, i);
    w.model += 3 * forward;
    w.full_attention += 3 * forward;
    if (kind_of(i) == KernelKind::attention && i.attributes.integer_or("causal", 0) != 0)
      w.full_attention += 3 * forward;
    w.hardware += i.cost.flops;
  }
  return w;
}

}  // namespace

Work work_of(const std::vector<Program>& stages) {
  Work all;
  for (const Program& p : stages) {
    std::vector<Work> bodies;
    for (const program::Body& body : p.bodies) bodies.push_back(of_body(body));
    const double ranks = static_cast<double>(p.mesh.ranks()) / p.mesh.stages();
    for (const program::Call& call : p.list(program::Step::train).calls) {
      const Work& w = bodies[static_cast<size_t>(call.body)];
      all.model += ranks * w.model;
      all.full_attention += ranks * w.full_attention;
      all.hardware += ranks * w.hardware;
    }
  }
  return all;
}

}  // namespace kintsugi::simulate

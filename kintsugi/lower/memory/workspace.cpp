#include "kintsugi/lower/memory/workspace.h"

#include "kintsugi/base/error.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using tensor::OperandList;
using tensor::Type;

namespace {

// Checks that a kernel has the operands and outputs of its operation, at the same positions.
void check(std::string_view what, const Instruction& i, const OperandList& operation, const OperandList& kernel,
           size_t count, uint32_t absent) {
  if (!(operation == kernel))
    throw base::InternalError("workspace", "{}: the operation's {} are {}, its kernel's are {}", i.kernel, what,
                              to_string(operation), to_string(kernel));
  if (!operation.allows(count, absent))
    throw base::InternalError("workspace", "{} with {} {}: it has {}", i.kernel, count, what, to_string(operation));
}

std::vector<const Type*> types_by_position(const program::Program& p, const std::vector<BufferId>& list,
                                           uint32_t absent) {
  std::vector<const Type*> types;
  for (BufferId b : tensor::by_position(std::span<const BufferId>(list), absent, program::kNoBuffer))
    types.push_back(b == program::kNoBuffer ? nullptr : &p.buffer(b).type);
  return types;
}

}  // namespace

void add_workspaces(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels,
                    int threads) {
  for (Body& body : p.bodies)
    for (Instruction& i : body.instructions) {
      if (i.kind != program::Kind::compute) continue;
      const kernels::Kernel& kernel = kernels.find(i.kernel);
      const graph::OpRow& row = operations.find(i.kernel);
      check("operands", i, row.ins, kernel.ins, i.ins.size(), i.absent.ins);
      check("outputs", i, row.outs, kernel.outs, i.outs.size(), i.absent.outs);
      if (!kernel.workspace) continue;
      const std::vector<const Type*> ins = types_by_position(p, i.ins, i.absent.ins),
                                     outs = types_by_position(p, i.outs, i.absent.outs);
      const int64_t bytes = kernel.workspace({ins, outs, i.attributes, threads});
      if (bytes == 0) continue;
      i.workspace = static_cast<BufferId>(p.buffers.size());
      p.buffers.push_back({.name = i.kernel + ".workspace", .type = {{{"byte", bytes}}, tensor::DType::u8}});
    }
}

}  // namespace kintsugi::lower

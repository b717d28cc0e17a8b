#include "kintsugi/lower/workspace.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;

void add_workspaces(program::Program& p, const kernels::KernelSet& kernels, int threads) {
  for (Body& body : p.bodies)
    for (Instruction& i : body.instructions) {
      if (i.kind != program::Kind::compute) continue;
      const kernels::Kernel& kernel = kernels.find(i.kernel);
      if (!kernel.workspace) continue;
      std::vector<tensor::Type> ins, outs;
      for (BufferId b : i.ins) ins.push_back(p.buffer(b).type);
      for (BufferId b : i.outs) outs.push_back(p.buffer(b).type);
      const int64_t bytes = kernel.workspace({ins, outs, i.attributes, threads});
      if (bytes == 0) continue;
      i.workspace = static_cast<BufferId>(p.buffers.size());
      p.buffers.push_back({.name = i.kernel + ".workspace", .type = {{{"byte", bytes}}, tensor::DType::u8}});
    }
}

}  // namespace kintsugi::lower

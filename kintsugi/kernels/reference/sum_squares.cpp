#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void sum_squares(const KernelCall& call) {
  constexpr size_t kBlock = 1024;
  for (size_t list = 0; list < call.ins.size(); ++list) {
    const std::vector<double> g = load(call.ins[list]);
    std::vector<double> blocks((g.size() + kBlock - 1) / kBlock, 0.0);
    for (size_t i = 0; i < g.size(); ++i) blocks[i / kBlock] += g[i] * g[i];
    store(call, list, blocks);
  }
}

}  // namespace kintsugi::kernels::reference

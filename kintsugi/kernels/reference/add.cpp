#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void add(const KernelCall& call) {
  std::vector<double> y(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for (const View& operand : call.ins) {
    const std::vector<double> x = load(operand);
    const std::vector<int64_t> at = offsets(call.outs[0].shape(), operand.shape());
    for (size_t i = 0; i < y.size(); ++i) y[i] += x[static_cast<size_t>(at[i])];
  }
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference

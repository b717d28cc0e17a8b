#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void sum(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);
  std::vector<double> y(static_cast<size_t>(call.outs[0].elements()), 0.0);
  const std::vector<int64_t> at = offsets(call.ins[0].shape(), call.outs[0].shape());
  for (size_t i = 0; i < x.size(); ++i) y[static_cast<size_t>(at[i])] += x[i];
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference

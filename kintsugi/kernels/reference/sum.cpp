#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void sum(const KernelCall& call) {
  const auto [shape, x] = load_columns(call, call.ins[0], call.outs[0].shape());
  std::vector<double> y(static_cast<size_t>(call.outs[0].elements()), 0.0);
  const std::vector<int64_t> at = offsets(shape, call.outs[0].shape());
  for (size_t i = 0; i < x.size(); ++i) y[static_cast<size_t>(at[i])] += x[i];
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void channel_scale(const KernelCall& call) {
  std::vector<double> y = load(call.ins[0]);
  const std::vector<double> gamma = load(call.ins[1]);
  for (size_t i = 0; i < y.size(); ++i) y[i] *= gamma[i % gamma.size()];
  store(call, 0, y);
}

void channel_scale_sums(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]), dy = load(call.ins[1]);
  std::vector<double> dgamma(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for (size_t i = 0; i < x.size(); ++i) dgamma[i % dgamma.size()] += x[i] * dy[i];
  store(call, 0, dgamma);
}

}  // namespace kintsugi::kernels::reference

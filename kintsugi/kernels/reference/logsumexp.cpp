#include <cmath>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void logsumexp(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);  // [part ...]
  const auto columns = static_cast<size_t>(call.outs[0].elements());
  std::vector<double> y;
  for (size_t i = 0; i < columns; ++i) {
    double top = x[i], sum = 0;
    for (size_t at = i; at < x.size(); at += columns) {
      if (!std::isnan(top) && !(x[at] <= top)) top = x[at];
    }
    if (std::isinf(top)) {
      y.push_back(top);
      continue;
    }
    for (size_t at = i; at < x.size(); at += columns) sum += std::exp(x[at] - top);
    y.push_back(top + std::log(sum));
  }
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void dropout(const KernelCall& call) {
  std::vector<double> y = load(call.ins[0]);
  const DropoutMask mask(call, call.attributes.number("p"), call.attributes.text("key"));
  const std::vector<int64_t> position = positions_in_whole(call, call.outs[0].shape());
  for (size_t i = 0; i < y.size(); ++i) {
    const double factor = position[i] < 0 ? 0 : mask(position[i]);
    y[i] = factor == 0 ? 0 : y[i] * factor;
  }
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference

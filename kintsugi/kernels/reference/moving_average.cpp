#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void moving_average(const KernelCall& call) {
  std::vector<double> average = load(call.ins[0]);
  const std::vector<double> w = load(call.ins[1]);
  const double decay = call.attributes.number("ema_decay");
  if (load_scalar(call.ins[2]) != 0)
    for (size_t i = 0; i < average.size(); ++i) average[i] = decay * average[i] + (1 - decay) * w[i];
  store(call, 0, average);
}

}  // namespace kintsugi::kernels::reference

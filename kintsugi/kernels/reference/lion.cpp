#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void lion(const KernelCall& call) {
  using In = LionIn;
  using Out = LionOut;
  std::vector<double> w = load(call.ins[In::kW]), m = load(call.ins[In::kM]);
  const std::vector<double> g = load(call.ins[In::kG]);
  const double factor = load_scalar(call.ins[In::kFactor]), beta1 = call.attributes.number("beta1"),
               beta2 = call.attributes.number("beta2"), decay = call.attributes.number("weight_decay");
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * factor, direction = beta1 * m[i] + (1 - beta1) * gradient;
      const double sign = direction > 0 ? 1.0 : direction < 0 ? -1.0 : 0.0;
      w[i] -= rate_of(call) * (sign + decay * w[i]);
      m[i] = beta2 * m[i] + (1 - beta2) * gradient;
    }
  }
  store(call, Out::kW, w);
  store(call, Out::kM, m);
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // rounded from the master as stored
}

}  // namespace kintsugi::kernels::reference

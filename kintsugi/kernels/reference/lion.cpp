#include "kintsugi/kernels/reference/lion.h"

#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void lion(const KernelCall& call) {
  enum : size_t { kW, kG, kM, kFactor, kFinite };
  enum : size_t { kNewW, kNewM, kWeight };
  std::vector<double> w = load(call.ins[kW]), m = load(call.ins[kM]);
  const std::vector<double> g = load(call.ins[kG]);
  const double factor = load_scalar(call.ins[kFactor]), beta1 = call.attributes.number("beta1"),
               beta2 = call.attributes.number("beta2"), decay = call.attributes.number("weight_decay");
  if (load_scalar(call.ins[kFinite]) != 0) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * factor, direction = beta1 * m[i] + (1 - beta1) * gradient;
      const double sign = direction > 0 ? 1.0 : direction < 0 ? -1.0 : 0.0;
      w[i] -= call.numbers.learning_rate * (sign + decay * w[i]);
      m[i] = beta2 * m[i] + (1 - beta2) * gradient;
    }
  }
  store(call, kNewW, w);
  store(call, kNewM, m);
  if (call.outs[kWeight].data) store(call, kWeight, load(call.outs[kNewW]));  // rounded from the master as stored
}

}  // namespace kintsugi::kernels::reference

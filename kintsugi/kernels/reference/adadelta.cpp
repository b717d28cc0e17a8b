#include <cmath>

#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void adadelta(const KernelCall& call) {
  using In = AdadeltaIn;
  using Out = AdadeltaOut;
  std::vector<double> w = load(call.ins[In::kW]), v = load(call.ins[In::kV]), d = load(call.ins[In::kD]);
  const std::vector<double> g = load(call.ins[In::kG]);
  const double factor = load_scalar(call.ins[In::kFactor]), rho = call.attributes.number("rho"),
               epsilon = call.attributes.number("epsilon"), decay = call.attributes.number("weight_decay");
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * factor + decay * w[i];
      v[i] = rho * v[i] + (1 - rho) * gradient * gradient;
      const double step = std::sqrt(d[i] + epsilon) / std::sqrt(v[i] + epsilon) * gradient;
      d[i] = rho * d[i] + (1 - rho) * step * step;
      w[i] -= rate_of(call) * step;
    }
  }
  store(call, Out::kW, w);
  store(call, Out::kV, v);
  store(call, Out::kD, d);
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // rounded from the master as stored
}

}  // namespace kintsugi::kernels::reference

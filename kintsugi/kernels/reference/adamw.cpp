#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/optimizer_operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void adamw(const KernelCall& call) {
  using In = AdamwIn;
  using Out = AdamwOut;
  std::vector<double> w = load(call.ins[In::kW]), m = load(call.ins[In::kM]), v = load(call.ins[In::kV]);
  const std::vector<double> g = load(call.ins[In::kG]);
  const double factor = load_scalar(call.ins[In::kFactor]), t = load_scalar(call.ins[In::kUpdates]) + 1;
  const double beta1 = call.attributes.number("beta1"), beta2 = call.attributes.number("beta2");
  const double epsilon = call.attributes.number("epsilon"), decay = call.attributes.number("weight_decay");
  const double rate = rate_of(call);
  const bool coupled = call.attributes.integer_or("coupled_decay", 0) != 0;
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * factor + (coupled ? decay * w[i] : 0.0);
      m[i] = beta1 * m[i] + (1 - beta1) * gradient;
      v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
      const double step = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + epsilon);
      w[i] -= rate * (step + (coupled ? 0.0 : decay * w[i]));
    }
  }
  store(call, Out::kW, w);
  store(call, Out::kM, m);
  store(call, Out::kV, v);
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // rounded from the master as stored
}

}  // namespace kintsugi::kernels::reference

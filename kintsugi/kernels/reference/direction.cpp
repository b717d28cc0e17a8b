#include <cmath>

#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void adam_direction(const KernelCall& call) {
  using In = AdamwIn;
  using Out = AdamDirectionOut;
  std::vector<double> m = load(call.ins[In::kM]), v = load(call.ins[In::kV]);
  const std::vector<double> w = load(call.ins[In::kW]), g = load(call.ins[In::kG]);
  const double factor = load_scalar(call.ins[In::kFactor]), t = load_scalar(call.ins[In::kUpdates]) + 1;
  const double beta1 = call.attributes.number("beta1"), beta2 = call.attributes.number("beta2");
  const double epsilon = call.attributes.number("epsilon"), decay = call.attributes.number("weight_decay");
  const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
  std::vector<double> u(w.size(), 0.0);
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * factor;
      m[i] = beta1 * m[i] + (1 - beta1) * gradient;
      v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
      u[i] = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + epsilon) + decay * w[i];
    }
  }
  store(call, Out::kM, m);
  store(call, Out::kV, v);
  store(call, Out::kU, u);
}

void apply_direction(const KernelCall& call) {
  using In = ApplyDirectionIn;
  using Out = ApplyDirectionOut;
  std::vector<double> w = load(call.ins[In::kW]);
  const std::vector<double> u = load(call.ins[In::kU]);
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    const bool decayed = call.attributes.integer_or("decay_in_direction", 0) != 0;
    const double decay = decayed ? 0.0 : call.attributes.number("weight_decay");
    const double rate = rate_of(call), scale = rate * direction_scale(call);
    for (size_t i = 0; i < w.size(); ++i) w[i] -= scale * u[i] + rate * decay * w[i];
  }
  store(call, Out::kW, w);
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // rounded from the master as stored
}

void lars(const KernelCall& call) {
  using In = LarsIn;
  using Out = SgdOut;
  std::vector<double> w = load(call.ins[In::kW]), m = load(call.ins[In::kM]);
  const std::vector<double> g = load(call.ins[In::kG]);
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    const double factor = load_scalar(call.ins[In::kFactor]), momentum = call.attributes.number("momentum"),
                 decay = call.attributes.number("weight_decay"), scale = rate_of(call) * lars_scale(call, factor);
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = momentum * m[i] + scale * (g[i] * factor + decay * w[i]);
      w[i] -= m[i];
    }
  }
  store(call, Out::kW, w);
  store(call, Out::kM, m);
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // rounded from the master as stored
}

}  // namespace kintsugi::kernels::reference

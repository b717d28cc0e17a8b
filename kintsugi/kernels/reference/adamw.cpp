#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void adamw(const KernelCall& call) {
  std::vector<double> w = load(call.ins[0]), m = load(call.ins[2]), v = load(call.ins[3]);
  const std::vector<double> g = load(call.ins[1]);
  const double factor = load_scalar(call.ins[4]), t = load_scalar(call.ins[6]) + 1;
  const double beta1 = call.attributes.number("beta1"), beta2 = call.attributes.number("beta2");
  const double epsilon = call.attributes.number("epsilon"), decay = call.attributes.number("weight_decay");
  const double rate = call.numbers.learning_rate;
  if (load_scalar(call.ins[5]) != 0) {
    const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * factor;
      m[i] = beta1 * m[i] + (1 - beta1) * gradient;
      v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
      const double step = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + epsilon);
      w[i] -= rate * (step + decay * w[i]);
    }
  }
  store(call, 0, w);
  store(call, 1, m);
  store(call, 2, v);
  if (call.outs.size() > 3) store(call, 3, load(call.outs[0]));  // of the master as it is stored
}

}  // namespace kintsugi::kernels::reference

#include <cmath>
#include <cstring>
#include <vector>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/optimizer_operands.h"
#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/values.h"
#include "kintsugi/kernels/stochastic.h"

namespace kintsugi::kernels::reference {

void adamw16(const KernelCall& call) {
  using In = AdamwIn;
  using Out = AdamwOut;
  const View& w_in = call.ins[In::kW];
  std::vector<double> w = load(w_in), m = load(call.ins[In::kM]), v = load(call.ins[In::kV]);
  const std::vector<double> g = load(call.ins[In::kG]);
  std::vector<uint16_t> m_bits(w.size()), v_bits(w.size());
  std::memcpy(m_bits.data(), call.ins[In::kM].data, 2 * w.size());
  std::memcpy(v_bits.data(), call.ins[In::kV].data, 2 * w.size());
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    const double factor = load_scalar(call.ins[In::kFactor]), t = load_scalar(call.ins[In::kUpdates]) + 1;
    const double beta1 = call.attributes.number("beta1"), beta2 = call.attributes.number("beta2");
    const double epsilon = call.attributes.number("epsilon"), decay = call.attributes.number("weight_decay");
    const double rate = rate_of(call), correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
    std::vector<uint32_t> random(w.size());
    random_words(call, 0, random);
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * factor;
      m[i] = beta1 * m[i] + (1 - beta1) * gradient;
      v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
      w[i] -= rate * ((m[i] / correction1) / (std::sqrt(v[i] / correction2) + epsilon) + decay * w[i]);
      m_bits[i] = round_stochastically(static_cast<float>(m[i]), random[i]);
      v_bits[i] = round_stochastically(static_cast<float>(v[i]), random[i] >> 16);
    }
  }
  store(call, Out::kW, w);
  std::memcpy(call.outs[Out::kM].data, m_bits.data(), 2 * w.size());
  std::memcpy(call.outs[Out::kV].data, v_bits.data(), 2 * w.size());
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // rounded from the master as stored
}

}  // namespace kintsugi::kernels::reference

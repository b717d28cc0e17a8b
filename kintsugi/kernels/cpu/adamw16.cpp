#include <algorithm>
#include <array>
#include <cmath>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/optimizer_step.h"
#include "kintsugi/kernels/cpu/optimizers.h"
#include "kintsugi/kernels/optimizer_operands.h"
#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/stochastic.h"

namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kRandomWords = 1024;  // made together

float moment_of(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Updates the elements of a range, of at most kRandomWords.
template <typename G>
void adamw16_part(const KernelCall& call, const AdamStep& s, const G* g, base::Range r) {
  using In = AdamwIn;
  using Out = AdamwOut;
  const auto in = [&]<typename T>(size_t operand, T) { return reinterpret_cast<const T*>(call.ins[operand].data); };
  const auto out = [&]<typename T>(size_t result, T) { return reinterpret_cast<T*>(call.outs[result].data); };
  const float* w = in(In::kW, 0.0f);
  const uint16_t *m_bits = in(In::kM, uint16_t{}), *v_bits = in(In::kV, uint16_t{});
  float* new_w = out(Out::kW, 0.0f);
  uint16_t *new_m = out(Out::kM, uint16_t{}), *new_v = out(Out::kV, uint16_t{});
  std::array<uint32_t, kRandomWords> random;
  random_words(call, r.begin, std::span(random).first(static_cast<size_t>(r.size())));
  for (int64_t i = r.begin; i < r.end; ++i) {
    const uint32_t word = random[static_cast<size_t>(i - r.begin)];
    const float gradient = static_cast<float>(g[i]) * s.factor;
    const float m = s.beta1 * moment_of(m_bits[i]) + (1 - s.beta1) * gradient;
    const float v = s.beta2 * moment_of(v_bits[i]) + (1 - s.beta2) * gradient * gradient;
    new_w[i] = w[i] - s.rate * (m * s.correction1 / (std::sqrt(v * s.correction2) + s.epsilon) + s.decay * w[i]);
    new_m[i] = round_stochastically(m, word);
    new_v[i] = round_stochastically(v, word >> 16);
  }
}

}  // namespace

bool adamw16_takes(const Operands& o) {
  const auto dtype = [&](size_t i) { return o.ins[i].dtype; };
  return dtype(AdamwIn::kW) == tensor::DType::f32 && is_gradient(dtype(AdamwIn::kG));
}

void adamw16(const KernelCall& call) {
  using In = AdamwIn;
  if (call.ins[In::kFinite].as<double>()[0] == 0) return reference::adamw16(call);
  const double t = call.ins[In::kUpdates].as<double>()[0] + 1, beta1 = call.attributes.number("beta1"),
               beta2 = call.attributes.number("beta2");
  const AdamStep step = {.factor = static_cast<float>(call.ins[In::kFactor].as<double>()[0]),
                         .beta1 = static_cast<float>(beta1),
                         .beta2 = static_cast<float>(beta2),
                         .correction1 = static_cast<float>(1 / (1 - std::pow(beta1, t))),
                         .correction2 = static_cast<float>(1 / (1 - std::pow(beta2, t))),
                         .epsilon = static_cast<float>(call.attributes.number("epsilon")),
                         .decay = static_cast<float>(call.attributes.number("weight_decay")),
                         .rate = static_cast<float>(rate_of(call))};
  const tensor::View &g = call.ins[In::kG], &weight = call.outs[AdamwOut::kWeight];
  const int64_t n = call.ins[In::kW].elements();
  call.team.for_shares((n + kRandomWords - 1) / kRandomWords, 4, [&](base::Range blocks, int) {
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      const base::Range r = {block * kRandomWords, std::min(n, (block + 1) * kRandomWords)};
      if (g.dtype() == tensor::DType::bf16)
        adamw16_part(call, step, reinterpret_cast<const tensor::bf16*>(g.data), r);
      else
        adamw16_part(call, step, reinterpret_cast<const float*>(g.data), r);
      if (weight.data)
        narrow(weight.dtype(), reinterpret_cast<const float*>(call.outs[AdamwOut::kW].data) + r.begin,
               weight.data + r.begin * tensor::size_of(weight.dtype()), r.size());
    }
  });
}

}  // namespace kintsugi::kernels::cpu

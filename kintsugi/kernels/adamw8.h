// One block of AdamW with 8-bit moments, for the kernels of the processor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kintsugi/kernels/dynamic_codes.h"
#include "kintsugi/kernels/optimizer_operands.h"
#include "kintsugi/tensor/state_blocks.h"

namespace kintsugi::kernels {

struct Adamw8In {
  enum : size_t { kW, kG, kM, kV, kMScale, kVScale, kFactor, kFinite, kUpdates };
  static constexpr OperandList kNames = {"w", "g", "m", "v", "m_scale", "v_scale", "factor", "finite", "updates"};
};
struct Adamw8Out {
  enum : size_t { kW, kM, kV, kMScale, kVScale, kWeight };
  static constexpr OperandList kNames = {"w", "m", "v", "m_scale", "v_scale", tensor::optional("weight")};
};

struct Adamw8Step {
  double factor = 0, beta1 = 0, beta2 = 0, correction1 = 1, correction2 = 1, epsilon = 0, decay = 0, rate = 0;
};

inline Adamw8Step adamw8_step(const KernelCall& call) {
  using In = Adamw8In;
  const double t = call.ins[In::kUpdates].as<double>()[0] + 1;
  Adamw8Step s = {.factor = call.ins[In::kFactor].as<double>()[0],
                  .beta1 = call.attributes.number("beta1"),
                  .beta2 = call.attributes.number("beta2"),
                  .epsilon = call.attributes.number("epsilon"),
                  .decay = call.attributes.number("weight_decay"),
                  .rate = rate_of(call)};
  s.correction1 = 1 - std::pow(s.beta1, t);
  s.correction2 = 1 - std::pow(s.beta2, t);
  return s;
}

// n elements, at most kStateBlock. The weight moves by the new moments before they are rounded to codes. A in which to
// compute; T of weights and scales; G of gradients.
template <typename A, typename T, typename G>
void adamw8_block(const Adamw8Step& step, int64_t n, T* w, const G* g, uint8_t* m_codes, uint8_t* v_codes, T& m_scale,
                  T& v_scale) {
  const DynamicCodes &of_m = signed_codes(), &of_v = unsigned_codes();
  A m[tensor::kStateBlock], v[tensor::kStateBlock], m_most = 0, v_most = 0;
  const auto beta1 = static_cast<A>(step.beta1), beta2 = static_cast<A>(step.beta2),
             factor = static_cast<A>(step.factor);
  for (int64_t i = 0; i < n; ++i) {
    const A gradient = static_cast<A>(g[i]) * factor;
    m[i] = beta1 * static_cast<A>(of_m.number(m_codes[i])) * m_scale + (1 - beta1) * gradient;
    v[i] = beta2 * static_cast<A>(of_v.number(v_codes[i])) * v_scale + (1 - beta2) * gradient * gradient;
    m_most = std::max(m_most, std::abs(m[i])), v_most = std::max(v_most, v[i]);
  }
  const auto rate = static_cast<A>(step.rate), decay = static_cast<A>(step.decay),
             epsilon = static_cast<A>(step.epsilon), correction1 = static_cast<A>(1 / step.correction1),
             correction2 = static_cast<A>(1 / step.correction2);
  for (int64_t i = 0; i < n; ++i)
    w[i] -= rate * (m[i] * correction1 / (std::sqrt(v[i] * correction2) + epsilon) + decay * w[i]);
  m_scale = static_cast<T>(m_most), v_scale = static_cast<T>(v_most);
  for (int64_t i = 0; i < n; ++i) {
    m_codes[i] = m_most > 0 ? of_m.nearest(static_cast<double>(m[i] / m_most)) : uint8_t{0};
    v_codes[i] = v_most > 0 ? of_v.nearest(static_cast<double>(v[i] / v_most)) : uint8_t{0};
  }
}

}  // namespace kintsugi::kernels

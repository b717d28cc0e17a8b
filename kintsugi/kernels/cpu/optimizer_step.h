// The numbers of one optimizer step, the same for all elements.
#pragma once

namespace kintsugi::kernels::cpu {

// correction1, correction2: 1 / (1 - beta^t)
struct AdamStep {
  float factor, beta1, beta2, correction1, correction2, epsilon, decay, rate;
};

struct MomentumStep {
  float momentum, factor, decay, rate;
};

}  // namespace kintsugi::kernels::cpu

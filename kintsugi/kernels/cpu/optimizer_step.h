// The scalars of an optimizer step, common to all elements.
#pragma once

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

// The types of accumulated gradients.
inline bool is_gradient(tensor::DType dtype) {
  return dtype == tensor::DType::f32 || dtype == tensor::DType::bf16;
}

// correction1, correction2: 1 / (1 - beta^t)
struct AdamStep {
  float factor, beta1, beta2, correction1, correction2, epsilon, decay, rate;
  bool coupled = false;  // the decay is part of the gradient (L2)
};

struct MomentumStep {
  float momentum, factor, decay, rate;
  bool nesterov = false;
};

}  // namespace kintsugi::kernels::cpu

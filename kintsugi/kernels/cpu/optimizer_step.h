// The numbers of one optimizer step, the same for all elements, and what it takes.
#pragma once

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

// The types of a sum of gradients.
inline bool is_gradient(tensor::DType dtype) {
  return dtype == tensor::DType::f32 || dtype == tensor::DType::bf16;
}

// correction1, correction2: 1 / (1 - beta^t)
struct AdamStep {
  float factor, beta1, beta2, correction1, correction2, epsilon, decay, rate;
  bool coupled = false;  // the decay is part of the gradient
};

struct MomentumStep {
  float momentum, factor, decay, rate;
  bool nesterov = false;
};

}  // namespace kintsugi::kernels::cpu

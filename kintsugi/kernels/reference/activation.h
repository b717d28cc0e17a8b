// Activation functions: value and derivative (slope), by name.
#pragma once

#include <string_view>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::reference {

struct Activation {
  std::string_view name;
  double (*value)(double);
  double (*slope)(double);
};

// "gelu" (erf form), "gelu_tanh", "silu", "relu", "relu2" or "tanh"; throws InternalError for others.
const Activation& activation(std::string_view name);

// The activation of an operation "gelu", "gelu_grad", "silu" ... with these attributes; GELU has a "form".
const Activation& activation_of(std::string_view operation, const tensor::Attributes& attributes);

// y = value(x) and dx = slope(x) * dy, element by element.
void apply(const Activation& activation, const KernelCall& call);
void apply_grad(const Activation& activation, const KernelCall& call);

}  // namespace kintsugi::kernels::reference

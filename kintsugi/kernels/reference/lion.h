// The kernel of Lion, in addition to reference.h.
#pragma once

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::reference {

inline constexpr tensor::OperandList kLionIns = {"w", "g", "m", "factor", "finite"},
                                     kLionOuts = {"w", "m", tensor::optional("weight")};
void lion(const KernelCall&);

}  // namespace kintsugi::kernels::reference

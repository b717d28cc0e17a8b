// The kernels of optimizers besides AdamW and SGD, in addition to reference.h.
#pragma once

#include "kintsugi/kernels/optimizer_operands.h"

namespace kintsugi::kernels::reference {

void adamw8(const KernelCall&);
void adamw16(const KernelCall&);
void lion(const KernelCall&);
void adadelta(const KernelCall&);
void adam_direction(const KernelCall&);
void apply_direction(const KernelCall&);
void lars(const KernelCall&);
void muon_momentum(const KernelCall&);
void orthogonalize(const KernelCall&);
void factored_sums(const KernelCall&);
void factored_moments(const KernelCall&);
void factored_direction(const KernelCall&);
void unfactored_direction(const KernelCall&);
void moving_average(const KernelCall&);

}  // namespace kintsugi::kernels::reference

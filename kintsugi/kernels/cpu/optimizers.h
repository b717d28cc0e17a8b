// CPU kernels of optimizers besides AdamW and SGD; see kernels.h.
#pragma once

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/optimizer_operands.h"

namespace kintsugi::kernels::cpu {

void adamw8(const KernelCall& call);
bool adamw8_takes(const Operands& o);
void adamw16(const KernelCall& call);
bool adamw16_takes(const Operands& o);
void lion(const KernelCall& call);
void adadelta(const KernelCall& call);
void adam_direction(const KernelCall& call);
void apply_direction(const KernelCall& call);
void lars(const KernelCall& call);
void muon_momentum(const KernelCall& call);
void moving_average(const KernelCall& call);
void orthogonalize(const KernelCall& call);
int64_t orthogonalize_workspace(const KernelShapes& shapes);
// States in fp32, and gradients as accumulated.
bool optimizer_takes(const Operands& o);
bool orthogonalize_takes(const Operands& o);

}  // namespace kintsugi::kernels::cpu

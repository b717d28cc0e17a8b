// CPU kernels of mixture-of-experts operations; see kernels.h.
#pragma once

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/expert_operands.h"

namespace kintsugi::kernels::cpu {

void dispatch(const KernelCall& call);
void combine(const KernelCall& call);
void weigh(const KernelCall& call);
bool slots_take(const Operands& o);
void grouped(const KernelCall& call);
bool grouped_takes(const Operands& o);
int64_t grouped_workspace(const KernelShapes& shapes);
void expert_bias(const KernelCall& call);
void expert_bias_grad(const KernelCall& call);
bool expert_bias_takes(const Operands& o);
void clamped_gated(const KernelCall& call);
void clamped_gated_grad(const KernelCall& call);
void join_head_dims(const KernelCall& call);
void join_head_dims_grad(const KernelCall& call);
bool join_head_dims_takes(const Operands& o);

}  // namespace kintsugi::kernels::cpu

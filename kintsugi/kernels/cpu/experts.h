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

}  // namespace kintsugi::kernels::cpu

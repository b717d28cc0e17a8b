// Reference kernels of mixture-of-experts operations; see reference.h.
#pragma once

#include "kintsugi/kernels/expert_operands.h"
#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::reference {

void route(const KernelCall&);
void route_grad(const KernelCall&);
void balance_loss(const KernelCall&);
void balance_loss_grad(const KernelCall&);
void expert_load(const KernelCall&);
void expert_balance(const KernelCall&);
void balance_bias(const KernelCall&);
void assign_slots(const KernelCall&);
void dispatch(const KernelCall&);
void combine(const KernelCall&);
void weigh(const KernelCall&);
void grouped(const KernelCall&);

}  // namespace kintsugi::kernels::reference

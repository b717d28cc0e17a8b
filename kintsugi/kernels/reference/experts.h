// Reference kernels of mixture-of-experts operations; see reference.h.
#pragma once

#include <vector>

#include "kintsugi/kernels/expert_operands.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void route(const KernelCall&);
void route_grad(const KernelCall&);
void balance_loss(const KernelCall&);
void balance_loss_grad(const KernelCall&);
void expert_load(const KernelCall&);
void expert_balance(const KernelCall&);
void balance_bias(const KernelCall&);
void router_z_loss(const KernelCall&);
void router_z_loss_grad(const KernelCall&);
void expert_bias(const KernelCall&);
void expert_bias_grad(const KernelCall&);
void clamped_gated(const KernelCall&);
void clamped_gated_grad(const KernelCall&);
void join_head_dims(const KernelCall&);
void join_head_dims_grad(const KernelCall&);
void assign_slots(const KernelCall&);
void dispatch(const KernelCall&);
void combine(const KernelCall&);
void weigh(const KernelCall&);
void grouped(const KernelCall&);

// Sets the values of slots without a token to zero. x: [batch expert slot wide]; without counts there are no slots.
void clear_unused_slots(const KernelCall& call, const Shape& x, const View& counts, std::vector<double>& values);

}  // namespace kintsugi::kernels::reference

// The parts of resolve() that concern mixtures of experts and the attention of their families.
#pragma once

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// Widths that follow from others: dense_ffn, value_head_dim.
void derive_expert_widths(Given& given);
// Balancing, and the number of slots.
void derive_experts(Given& given);

// Each throws UserError for values that contradict each other.
void check_experts(const Given& given);
void check_latent_attention(const Given& given);

void warn_of_idle_expert_keys(Resolved& given);

}  // namespace kintsugi::config

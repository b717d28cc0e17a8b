// Handling of tokens that find no slot of their expert.
#pragma once

#include <cstdint>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// For assign_slots: a token of a sample (local index) needs one more slot of the expert than exist. Throws UserError
// with the layer and the number of such tokens, unless the call has drop = 1.
void refuse_token(const KernelCall& call, int64_t sample, int64_t expert);

}  // namespace kintsugi::kernels

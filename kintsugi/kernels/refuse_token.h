// What a kernel does with a token that finds no slot of its expert.
#pragma once

#include <cstdint>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// Of assign_slots: a token of a sample (its local index) needs one more slot of the expert than there are. UserError
// with the layer and the count of such tokens, unless the call has drop = 1.
void refuse_token(const KernelCall& call, int64_t sample, int64_t expert);

}  // namespace kintsugi::kernels

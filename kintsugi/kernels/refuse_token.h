// Handling of tokens that find no slot of their expert.
#pragma once

#include <cstdint>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// The tokens of a sample that use an expert which has too few slots.
struct RefusedTokens {
  int64_t tokens = 0;  // 0: none
  int64_t layer = 0, expert = 0, capacity = 0;
};

// Throws UserError if there are any.
void require_slots(const RefusedTokens& refused);

// For assign_slots: a token of a sample (local index) needs one more slot of the expert than exist. Throws UserError
// with the layer and the number of such tokens, unless the call has drop = 1.
void refuse_token(const KernelCall& call, int64_t sample, int64_t expert);

}  // namespace kintsugi::kernels

// Sizes of dims against the axes that they are split over.
#pragma once

#include <span>

#include "kintsugi/plan/plan.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {

// UserError `[plan] dim "ffn" of size 3 is smaller than mesh axis "tensor" of size 4; ...` where a rank would hold
// nothing but padding, or an axis would find no dim because that which a rule names is too small. Sizes that merely do
// not divide are padded. `dims` are those of the model; those of size 0 are not known yet, and are left out.
void check_sizes(const Plan& plan, std::span<const tensor::Dim> dims);

}  // namespace kintsugi::plan

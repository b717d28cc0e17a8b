// Checks sizes of dims against the axes that they are split over.
#pragma once

#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

// UserError `[plan] dim "ffn" of size 3 is smaller than mesh axis "tensor" of size 4; ...` if a rank would hold
// nothing but padding, or an axis would find no dim because the one that a rule names is too small. Sizes that are
// merely not divisible are padded. A dim of size 0 is left out.
// not divide are padded. A dim of size 0 is left out.
void check_sizes(const Plan& plan, const ModelDims& model);

}  // namespace kintsugi::plan

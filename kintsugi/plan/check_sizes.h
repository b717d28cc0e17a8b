// Sizes of dims against the axes that they are split over.
#pragma once

#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

// UserError `[plan] dim "ffn" of size 3 is smaller than mesh axis "tensor" of size 4; ...` where a rank would hold
// nothing but padding, or an axis would find no dim because that which a rule names is too small. Sizes that merely do
// not divide are padded. A dim of size 0 is left out.
void check_sizes(const Plan& plan, const ModelDims& model);

}  // namespace kintsugi::plan

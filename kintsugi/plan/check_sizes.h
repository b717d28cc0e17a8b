// Checks sizes of dims against the axes that split them.
#pragma once

#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

// Throws UserError `[plan] dim "ffn" of size 3 is smaller than mesh axis "tensor" of size 4; ...` if a rank would hold
// only padding, or an axis would split nothing because the dim that a rule names is too small. Sizes that are not
// divisible are padded. Dims of size 0 are skipped. A plan with `repeat` permits both.
void check_sizes(const Plan& plan, const ModelDims& model);

}  // namespace kintsugi::plan

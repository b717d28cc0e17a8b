// Checks rules against the mesh axes and the families and dims of the model.
#pragma once

#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

// Throws UserError "[plan] rule ...: ..." for a rule that names an unknown axis, family or dim, splits a dim that the
// family requires whole, or uses "in steps" or flat where they do not apply.
void check_rules(const Plan& plan, const ModelDims& model);

}  // namespace kintsugi::plan

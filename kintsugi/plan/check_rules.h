// Checks rules against the axes of the mesh and the families and dims of the model.
#pragma once

#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

// UserError "[plan] rule ...: ..." for a rule that names an axis, a family or a dim that does not exist, splits a dim
// that the family needs whole, or uses "in steps" or flat where they do not apply.
void check_rules(const Plan& plan, const ModelDims& model);

}  // namespace kintsugi::plan

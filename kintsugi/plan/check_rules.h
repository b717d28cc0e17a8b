// Rules against what there is: the axes of the mesh, the families and dims of the model.
#pragma once

#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

// UserError "[plan] rule ...: ..." for a rule that names an axis, a family or a dim that there is not, splits a dim
// that the family needs whole, takes in steps what it cannot, or makes flat what has no flat form.
void check_rules(const Plan& plan, const ModelDims& model);

}  // namespace kintsugi::plan

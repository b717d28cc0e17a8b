// Checks a plan against its model.
#pragma once

#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

// check_rules() and check_sizes(). The partitioner checks that each axis splits some dim of the step.
void check_plan(const Plan& plan, const ModelDims& model);

}  // namespace kintsugi::plan

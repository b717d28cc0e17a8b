// A plan against the model that it is for.
#pragma once

#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

// check_rules and check_sizes. That each axis finds a dim somewhere in the step is seen by the partitioner.
void check_plan(const Plan& plan, const ModelDims& model);

}  // namespace kintsugi::plan

#include "kintsugi/plan/check_plan.h"

#include "kintsugi/plan/check_rules.h"
#include "kintsugi/plan/check_sizes.h"

namespace kintsugi::plan {

void check_plan(const Plan& plan, const ModelDims& model) {
  check_rules(plan, model);
  check_sizes(plan, model);
}

}  // namespace kintsugi::plan

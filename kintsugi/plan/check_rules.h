// Rules against what there is: axes of the mesh, families, dims of the model.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/plan/plan.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {

// What `in ...` may name: the operations, and the kinds of state.
std::vector<std::string_view> families();

// UserError "[plan] rule ...: ..." for a rule that names an axis, a family or a dim that there is not, splits a dim
// that the family needs whole, takes in steps what it cannot, or makes flat what has no flat form.
void check_rules(const Plan& plan, std::span<const tensor::Dim> dims);

}  // namespace kintsugi::plan

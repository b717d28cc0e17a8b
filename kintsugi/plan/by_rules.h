// Applies the rules of a plan to dims: which factor splits what.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/plan/plan.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {

// dim -> factors, in the order of cutting.
using Splits = std::map<std::string, std::vector<mesh::Factor>, std::less<>>;

// Whether a dim that is already split by `cut` can also be split by `f`.
bool fits(const mesh::Mesh& mesh, const tensor::Dim& dim, const std::vector<mesh::Factor>& cut, mesh::Factor f,
          bool pad);

// Assigns each factor to the first rule that fits an operation (or state) of the family with these splittable dims: the
// remaining size is divisible, or the rule pads and leaves more than one position per part. `taken`: factors already
// assigned; new ones are added.
Splits by_rules(const Plan& plan, std::string_view family, const std::vector<tensor::Dim>& dims,
                std::vector<mesh::Factor>& taken);

}  // namespace kintsugi::plan

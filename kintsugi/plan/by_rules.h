// The rules of a plan applied to dims: which factor splits what.
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

// Whether a dim that these factors split already can be split by one more.
bool fits(const mesh::Mesh& mesh, const tensor::Dim& dim, const std::vector<mesh::Factor>& cut, mesh::Factor f,
          bool pad);

// Each factor goes to the first rule that fits an operation (or state) of the family whose splittable dims are these:
// the rest of the dim is divisible, or the rule pads and more than one position per part is left. `taken` are the
// factors that are assigned already; new ones are added.
Splits by_rules(const Plan& plan, std::string_view family, const std::vector<tensor::Dim>& dims,
                std::vector<mesh::Factor>& taken);

}  // namespace kintsugi::plan

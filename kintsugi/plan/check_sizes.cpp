#include "kintsugi/plan/check_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/plan/by_rules.h"

namespace kintsugi::plan {
namespace {

using mesh::Factor;
using mesh::Mesh;
using Factors = std::vector<Factor>;
using Dims = std::vector<tensor::Dim>;

const tensor::Dim* find(const Dims& dims, std::string_view name) {
  const auto at = std::find_if(dims.begin(), dims.end(), [&](const tensor::Dim& d) { return d.name == name; });
  return at == dims.end() ? nullptr : &*at;
}

bool applies(const Rule& rule, const Place& place) {
  return (rule.family.empty() || rule.family == place.family) && !rule.steps && find(place.dims, rule.dim);
}

// A dim that is too small for the axes that should split it.
struct Small {
  const tensor::Dim* dim = nullptr;
  std::string axes = {};  // "tensor", or "data tensor" for several
  int64_t size = 1;       // of all of them together
};

// The axes that these factors belong to.
Small small_for(const Mesh& mesh, const tensor::Dim& dim, const Factors& factors) {
  Small small = {.dim = &dim};
  for (size_t a = 0; a < mesh.axes().size(); ++a) {
    const auto in_axis = [&](Factor f) { return mesh.factor(f).axis == static_cast<int>(a); };
    if (std::none_of(factors.begin(), factors.end(), in_axis)) continue;
    small.axes += (small.axes.empty() ? "" : " ") + mesh.axes()[a].name;
    small.size *= mesh.axes()[a].size;
  }
  return small;
}

// None if the plan lets ranks repeat work, or idle.
Small find_small(const Plan& plan, const Place& place) {
  if (plan.repeat) return {};
  const Mesh& mesh = plan.mesh;
  Factors taken;
  for (const auto& [name, factors] : by_rules(plan, place.family, place.dims, taken))
    if (find(place.dims, name)->size < mesh.count(factors)) return small_for(mesh, *find(place.dims, name), factors);
  for (const Rule& rule : plan.rules) {
    if (!applies(rule, place)) continue;
    const Factors factors = mesh.expand(rule.axes);
    const tensor::Dim& dim = *find(place.dims, rule.dim);
    const bool left = std::any_of(factors.begin(), factors.end(),
                                  [&](Factor f) { return !std::count(taken.begin(), taken.end(), f); });
    if (left && dim.size < mesh.count(factors)) return small_for(mesh, dim, factors);
  }
  return {};
}

Plan resized(const Plan& plan, const std::string& axis, int64_t size) {
  std::vector<mesh::Axis> axes = plan.mesh.axes();
  for (mesh::Axis& a : axes)
    if (a.name == axis) a.size = size;
  return {.mesh = Mesh(std::move(axes)), .rules = plan.rules};
}

// Other dims of the place that rules offer to the same axes.
Dims dims_beside(const Plan& plan, const Place& place, const Small& small) {
  Dims others;
  for (const tensor::Dim& d : place.dims)
    for (const Rule& rule : plan.rules) {
      if (rule.dim != d.name || &d == small.dim || !applies(rule, place)) continue;
      if (small_for(plan.mesh, d, plan.mesh.expand(rule.axes)).axes != small.axes) continue;
      others.push_back(d);
      break;
    }
  return others;
}

bool several(const Small& small) {
  return small.axes.find(' ') != std::string::npos;
}

// "; nearest ffn: 4; nearest tensor: 3"
std::string nearest(const Plan& plan, const Place& place, const Small& small, const Dims& others) {
  int64_t shared = 1;  // ranks available to the other axes
  for (const tensor::Dim& d : others) shared *= d.size;
  std::string text;
  Place larger = place;
  tensor::Dim& dim = larger.dims[static_cast<size_t>(small.dim - place.dims.data())];
  dim.size = std::max(dim.size + 1, (small.size + shared - 1) / shared);
  while (dim.size < small.size && find_small(plan, larger).dim) ++dim.size;
  // The sizes of feature maps follow from that of the image.
  const bool of_image = dim.name == "height" || dim.name == "width" || dim.name == "depth";
  if (!of_image && !find_small(plan, larger).dim) text += fmt::format("; nearest {}: {}", dim.name, dim.size);
  if (several(small)) return text;
  for (int64_t n = std::min(small.size - 1, small.dim->size * shared); n >= 1; --n)
    if (!find_small(resized(plan, small.axes, n), place).dim)
      return text + fmt::format("; nearest {}: {}", small.axes, n);
  return text;
}

// ", with "group" of size 1,"
std::string shown(const Dims& others) {
  std::string text;
  for (const tensor::Dim& d : others)
    text += fmt::format("{} \"{}\" of size {}", text.empty() ? ", with" : " and", d.name, d.size);
  return text.empty() ? "" : text + ",";
}

}  // namespace

void check_sizes(const Plan& plan, const ModelDims& model) {
  for (Place place : model.places) {
    std::erase_if(place.dims, [](const tensor::Dim& d) { return d.size == 0; });
    const Small small = find_small(plan, place);
    if (!small.dim) continue;
    const Dims others = dims_beside(plan, place, small);
    throw base::UserError("plan", "dim \"{}\" of size {}{} is smaller than mesh {} \"{}\" of size {}{}",
                          small.dim->name, small.dim->size, shown(others), several(small) ? "axes" : "axis", small.axes,
                          small.size, nearest(plan, place, small, others));
  }
}

}  // namespace kintsugi::plan

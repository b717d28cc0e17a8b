// What each axis of the mesh splits by default, after the user's own rules: one row for each axis.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/config/axes.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/mesh/mesh.h"
#include "kintsugi/plan/rule.h"

namespace kintsugi::plan {

// The functions are called if the axis is larger than 1.
struct AxisRow {
  config::Axis axis = {};
  std::vector<Rule> (*rules)(const config::Parallel&) = nullptr;  // what it splits
  // What else it may split, after the rules of all axes.
  std::vector<Rule> (*further)(const config::Parallel&, const mesh::Mesh&) = nullptr;
  // Its own name, or names of its factors: those over which ZeRO splits states.
  std::vector<std::string> (*shards)(const config::Parallel&, const mesh::Mesh&) = nullptr;
  std::vector<std::string> (*zigzag)(const config::Parallel&) = nullptr;  // dims that are split zigzag over it
};

// Each of config::axes(), in the order of their rules.
const std::vector<AxisRow>& axis_rows();

// The factors of these axes, each on its own, the last first.
std::vector<std::string> innermost_first(const mesh::Mesh& mesh, const std::vector<std::string>& axes);

}  // namespace kintsugi::plan

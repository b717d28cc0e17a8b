// Default rules of each mesh axis, applied after the user's own: one row per axis.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/config/axes.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/mesh/mesh.h"
#include "kintsugi/plan/rule.h"

namespace kintsugi::plan {

// The functions are called only if the axis is larger than 1.
struct AxisRow {
  config::Axis axis = {};
  std::vector<Rule> (*rules)(const config::Parallel&) = nullptr;  // what it splits
  // What else it may split, after the rules of all axes.
  std::vector<Rule> (*further)(const config::Parallel&, const mesh::Mesh&) = nullptr;
  // Axes or factors over which ZeRO shards states: its own name, or names of its factors.
  std::vector<std::string> (*shards)(const config::Parallel&, const mesh::Mesh&) = nullptr;
  std::vector<std::string> (*zigzag)(const config::Parallel&) = nullptr;  // dims split zigzag over it
};

// One row for each of config::axes(), in the order of their rules.
const std::vector<AxisRow>& axis_rows();

// The individual factors of these axes, last first.
std::vector<std::string> innermost_first(const mesh::Mesh& mesh, const std::vector<std::string>& axes);

}  // namespace kintsugi::plan

// A plan: a mesh of ranks, and rules that say which dim of which family of operations is split over which axis.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::plan {

struct Axis {
  std::string name;
  int64_t size = 1;
};

// Named axes, outermost first. The number of ranks is the product of their sizes.
struct Mesh {
  std::vector<Axis> axes;

  int64_t ranks() const;
};

// `dim [in family] -> axes`
struct Rule {
  std::string dim;
  std::vector<std::string> axes;
  std::string family;  // empty: in every operation and state
  bool pad = false;    // sizes that do not divide are padded; else the axis goes to the next rule
  bool steps = false;  // taken in steps round the axis (ring)
};

struct Plan {
  Mesh mesh;
  std::vector<Rule> rules;
};

// What [parallel] says, as rules: the only place that knows strategies by name.
Plan plan_from(const config::Parallel& parallel);

// "mesh: data 1\n  batch -> data\n"
std::string print(const Plan& plan);

}  // namespace kintsugi::plan

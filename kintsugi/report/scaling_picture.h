// Plots how throughput scales with the number of devices.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/report/thin.h"

namespace kintsugi::report {

struct ScalingCurve {
  std::string name;
  std::vector<Point> points;         // devices, ascending, and tokens per second; both positive
  std::vector<Point> measured = {};  // the same for measured runs, drawn as rings next to the curve
};

// Returns SVG with logarithmic axes. A dashed line per curve shows linear scaling from its first point.
std::string scaling_picture(const std::vector<ScalingCurve>& curves, const std::string& title);

}  // namespace kintsugi::report

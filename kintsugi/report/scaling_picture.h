// How speed grows with the number of devices, as a picture.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/report/thin.h"

namespace kintsugi::report {

struct ScalingCurve {
  std::string name;
  std::vector<Point> points;         // devices, ascending, and tokens a second; both above 0
  std::vector<Point> measured = {};  // the same of runs, drawn as rings beside the curve
};

// SVG; both axes are of logarithms. A dashed line for each curve shows the speed of its first point for every device.
std::string scaling_picture(const std::vector<ScalingCurve>& curves, const std::string& title);

}  // namespace kintsugi::report

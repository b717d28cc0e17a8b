// The planned time of a step beside the measured one, told once after warm-up.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kintsugi::train {

class PlannedStep {
 public:
  // seconds: as planned; nothing: there is no plan, and nothing is ever told. cluster: the file that it was planned on.
  PlannedStep(std::optional<double> seconds, std::string cluster) : planned_(seconds), cluster_(std::move(cluster)) {}

  static constexpr int kWarmUp = 2, kMeasured = 5;  // steps

  // After each step, with its seconds. The line, after kWarmUp and kMeasured steps: the median of the latter.
  std::optional<std::string> add(double seconds);

 private:
  std::optional<double> planned_;
  std::string cluster_;
  int steps_ = 0;
  std::vector<double> measured_;
};

}  // namespace kintsugi::train

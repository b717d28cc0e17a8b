// Compares the predicted time of a step with the measured one, once after warm-up.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kintsugi::train {

class PlannedStep {
 public:
  // seconds: the prediction; nothing: there is none, and nothing is reported. cluster: the file it was predicted for.
  PlannedStep(std::optional<double> seconds, std::string cluster) : planned_(seconds), cluster_(std::move(cluster)) {}

  static constexpr int kWarmUp = 2, kMeasured = 5;  // steps

  // Call after each step with its duration. After kWarmUp + kMeasured steps returns the line, with the median of the
  // latter.
  std::optional<std::string> add(double seconds);

 private:
  std::optional<double> planned_;
  std::string cluster_;
  int steps_ = 0;
  std::vector<double> measured_;
};

}  // namespace kintsugi::train

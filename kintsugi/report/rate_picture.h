// Plots the loss over the learning rates of a range test.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kintsugi/report/thin.h"

namespace kintsugi::report {

struct RateCurve {
  std::vector<Point> losses, smooth;  // learning rate, ascending and positive, and loss
  std::optional<double> marked;       // a learning rate to mark
};

// Returns SVG with a logarithmic axis of learning rates.
std::string rate_picture(const RateCurve& curve, const std::string& title);

}  // namespace kintsugi::report

#include "kintsugi/simulate/failures.h"

#include <cmath>

namespace kintsugi::simulate {

double useful_share(const Failures& f, double interval) {
  // A segment is repeated until no failure occurs in it, each failure followed by a restart in which none may occur.
  const double expected = f.between * std::exp(f.restart / f.between) * std::expm1((interval + f.write) / f.between);
  return std::isfinite(expected) ? interval / expected : 0;
}

double best_interval(const Failures& f) {
  // Zero of the derivative of expected time over interval: (1 - t / M) e^((t + write) / M) = 1. The left side decreases
  // from above 1 to 0 between 0 and M.
  double least = 0, most = f.between;
  for (int i = 0; i < 200; ++i) {
    const double t = (least + most) / 2;
    const bool above = std::log1p(-t / f.between) + (t + f.write) / f.between > 0;
    (above ? least : most) = t;
  }
  return (least + most) / 2;
}

}  // namespace kintsugi::simulate

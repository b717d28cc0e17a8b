#include "kintsugi/report/ticks.h"

#include <cmath>

namespace kintsugi::report {

double round_step(double most, double count) {
  const double raw = most / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (double by : {1.0, 2.0, 5.0})
    if (raw <= by * power) return by * power;
  return 10 * power;
}

std::vector<double> ticks(double low, double high, double count) {
  if (!(high > low)) return {low};
  const double step = round_step(high - low, count);
  std::vector<double> list;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    list.push_back(i == 0 ? 0 : i * step);
  return list;
}

std::vector<double> log_ticks(double low, double high, double count) {
  const double first = std::floor(std::log10(low)), last = std::ceil(std::log10(high));
  const double every = std::ceil((last - first) / count);
  std::vector<double> list;
  for (double power = first; power <= last; power += every)
    for (const double by : {1.0, 2.0, 5.0}) {
      const double tick = by * std::pow(10.0, power);
      const bool fits = by == 1.0 || last - first <= count / 2;
      if (fits && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) list.push_back(tick);
    }
  return list.empty() ? std::vector{low, high} : list;
}

}  // namespace kintsugi::report

#include "kintsugi/simulate/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "kintsugi/base/error.h"

namespace kintsugi::simulate {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr std::array<Unit, 9> kBytes = {{{"B", 1},
                                         {"kB", 1e3},
                                         {"MB", 1e6},
                                         {"GB", 1e9},
                                         {"TB", 1e12},
                                         {"KiB", 1024.0},
                                         {"MiB", 0x1p20},
                                         {"GiB", 0x1p30},
                                         {"TiB", 0x1p40}}};
constexpr std::array<Unit, 8> kRates = {{{"MB/s", 1e6},
                                         {"GB/s", 1e9},
                                         {"TB/s", 1e12},
                                         {"Mb/s", 1e6 / 8},
                                         {"Gb/s", 1e9 / 8},
                                         {"Tb/s", 1e12 / 8},
                                         {"GiB/s", 0x1p30},
                                         {"TiB/s", 0x1p40}}};
constexpr std::array<Unit, 4> kFlops = {{{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"MFLOP/s", 1e6}}};
constexpr std::array<Unit, 6> kSeconds = {
    {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}};
constexpr std::array<Unit, 2> kWatts = {{{"W", 1}, {"kW", 1e3}}};

std::span<const Unit> units(Measure measure) {
  switch (measure) {
    case Measure::bytes:
      return kBytes;
    case Measure::bytes_per_second:
      return kRates;
    case Measure::flops_per_second:
      return kFlops;
    case Measure::seconds:
      return kSeconds;
    case Measure::watts:
      return kWatts;
    case Measure::count:
    case Measure::share:
    case Measure::price:
      return {};
  }
  throw base::InternalError("simulate", "no measure {}", static_cast<int>(measure));
}

}  // namespace

std::optional<double> quantity(std::string_view text, Measure measure) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return {};
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::span<const Unit> list = units(measure);
  if (list.empty()) return rest.empty() ? std::optional(number) : std::nullopt;
  for (const Unit& unit : list)
    if (rest == unit.name) return number * unit.size;
  return {};
}

std::string to_string(double value, Measure measure) {
  // The largest unit of powers of 1,000 that does not exceed the value.
  const Unit* best = nullptr;
  for (const Unit& unit : units(measure)) {
    const bool decimal = unit.name.find('i') == unit.name.npos && unit.name.find("b/") == unit.name.npos;
    const bool fits = best == nullptr || (unit.size <= value && (best->size > value || unit.size > best->size));
    if (decimal && fits) best = &unit;
  }
  if (best == nullptr) return fmt::format("{:.4g}", value);
  return fmt::format("{:.4g} {}", value / best->size, best->name);
}

std::string_view example(Measure measure) {
  switch (measure) {
    case Measure::count:
      return "8";
    case Measure::share:
      return "0.8";
    case Measure::bytes:
      return "\"80 GB\"";
    case Measure::bytes_per_second:
      return "\"200 GB/s\"";
    case Measure::flops_per_second:
      return "\"312 TFLOP/s\"";
    case Measure::seconds:
      return "\"40 us\"";
    case Measure::watts:
      return "\"400 W\"";
    case Measure::price:
      return "1.5";
  }
  throw base::InternalError("simulate", "no measure {}", static_cast<int>(measure));
}

}  // namespace kintsugi::simulate

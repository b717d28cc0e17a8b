#include "kintsugi/config/memory_size.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace kintsugi::config {

std::optional<int64_t> memory_size(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits = {{{"B", 1},
                                                                          {"kB", 1e3},
                                                                          {"MB", 1e6},
                                                                          {"GB", 1e9},
                                                                          {"TB", 1e12},
                                                                          {"KiB", 1024.0},
                                                                          {"MiB", 1048576.0},
                                                                          {"GiB", 1073741824.0},
                                                                          {"TiB", 1099511627776.0}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, bytes] : kUnits) {
    if (name != unit) continue;
    const double size = std::floor(number * bytes);
    if (!(size >= 1 && size <= 0x1p62)) return std::nullopt;
    return static_cast<int64_t>(size);
  }
  return std::nullopt;
}

}  // namespace kintsugi::config

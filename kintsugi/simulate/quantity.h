// Quantities as a data sheet writes them: a number and a unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::simulate {

// What a figure is of. share: a part of a limit, without a unit. Values are in bytes, bytes/s, FLOP/s, seconds, watts.
enum class Measure : uint8_t { count, share, bytes, bytes_per_second, flops_per_second, seconds, watts, price };

// The range that a figure of a machine can have, for messages too: "from 1 MB/s to 100 TB/s".
struct Range {
  double least = 0, most = 0;
};

// "2039 GB/s", "200 Gb/s", "312 TFLOP/s", "40 us", "80 GB": the number in the unit of the measure; nothing for another
// text. A count, a share and a price have no unit.
std::optional<double> quantity(std::string_view text, Measure measure);

// "2.04 TB/s": in the unit that reads best.
std::string to_string(double value, Measure measure);

// How a text of the measure looks, for messages: "\"2039 GB/s\"".
std::string_view example(Measure measure);

}  // namespace kintsugi::simulate

// Quantities as on a data sheet: a number and a unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::simulate {

// The kind of a figure. share: a unitless fraction of a limit. Values are in bytes, bytes/s, FLOP/s, seconds, watts.
enum class Measure : uint8_t { count, share, bytes, bytes_per_second, flops_per_second, seconds, watts, price };

// The plausible range of a machine's figure, also for messages: "from 1 MB/s to 100 TB/s".
struct Range {
  double least = 0, most = 0;
};

// Parses "2039 GB/s", "200 Gb/s", "312 TFLOP/s", "40 us", "80 GB" to the unit of the measure; nothing for other texts.
// Counts, shares and prices have no unit.
std::optional<double> quantity(std::string_view text, Measure measure);

// "2.04 TB/s": in the most readable unit.
std::string to_string(double value, Measure measure);

// Example of a text of the measure, for messages: "\"2039 GB/s\"".
std::string_view example(Measure measure);

}  // namespace kintsugi::simulate

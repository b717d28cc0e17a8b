// How a run ended: a file in its folder, until it is started again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::train {

// Why a run ended before its last step.
enum class Stop : int32_t { none, time, signal, step };
std::string_view name_of(Stop stop);  // "signal", "stop_after_minutes", "--stop-at"; "" of none

inline constexpr const char* kEndFile = "ended.json";

struct RunEnd {
  int64_t step = 0;        // steps done; 0 too where an error does not know
  Stop stop = Stop::none;  // none: the last step, or an error
  std::string error = {};  // the line that was printed; "" without one
};

// "stopped by a signal", "ended with an error"; "" after the last step.
std::string in_words(const RunEnd& end);

// Nothing where there is no file: the run is under way, or was killed. UserError if it is damaged.
std::optional<RunEnd> read_end(const std::filesystem::path& folder);
// UserError if the file cannot be written.
void write_end(const std::filesystem::path& folder, const RunEnd& end);
void remove_end(const std::filesystem::path& folder);

}  // namespace kintsugi::train

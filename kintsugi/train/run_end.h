// Records how a run ended: a file in its folder, until the run is started again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::train {

// Why a run ended before its last step.
enum class Stop : int32_t { none, time, signal, step };
std::string_view name_of(Stop stop);  // "signal", "stop_after_minutes", "--stop-at"; "" for none

inline constexpr const char* kEndFile = "ended.json";

struct RunEnd {
  int64_t step = 0;        // completed; also 0 if an error occurred before it was known
  Stop stop = Stop::none;  // none: the last step was reached, or an error occurred
  std::string error = {};  // the line that was printed; "" if none
};

// "stopped by a signal", "ended with an error"; "" after the last step.
std::string in_words(const RunEnd& end);

// Nothing if there is no file: the run is in progress, or was killed. Throws UserError if the file is damaged.
std::optional<RunEnd> read_end(const std::filesystem::path& folder);
// Throws UserError if the file cannot be written.
void write_end(const std::filesystem::path& folder, const RunEnd& end);
void remove_end(const std::filesystem::path& folder);

}  // namespace kintsugi::train

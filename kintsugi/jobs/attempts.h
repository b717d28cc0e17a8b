// The attempts of a run: each start of its ranks by `kintsugi launch --with`, in attempts.jsonl of the run's folder,
// over all jobs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kintsugi::jobs {

inline constexpr const char* kAttemptsFile = "attempts.jsonl";

enum class Outcome { unknown, finished, stopped, failed };
std::string_view name_of(Outcome outcome);

struct Attempt {
  int64_t number = 0;  // from 1
  std::string job;     // of the scheduler; ""
  int64_t began = 0;   // seconds since 1970
  int64_t from = 0;    // step of the newest checkpoint as it began
  // Once it has ended; unknown: it runs, or was killed together with its launcher.
  Outcome outcome = Outcome::unknown;
  int64_t ended = 0;
  int64_t to = 0;
  std::string why;        // "signal", "a rank was killed: ..."
  bool given_up = false;  // and no other was started
};

// UserError for a line that is damaged; the last may be incomplete.
std::vector<Attempt> read_attempts(const std::filesystem::path& run_folder);
void add_begin(const std::filesystem::path& run_folder, const Attempt& attempt);
void add_end(const std::filesystem::path& run_folder, const Attempt& attempt);

// Why another attempt is not begun, with the step of the newest checkpoint as it is now; nothing if it may. Counted
// from the last that finished the run or was given up: at most `max_restarts` after the first, and not after two that
// ended without a new checkpoint.
struct Refusal {
  bool no_progress = false;
  std::string why;
};
std::optional<Refusal> refusal(const std::vector<Attempt>& attempts, int64_t step, int64_t max_restarts);

}  // namespace kintsugi::jobs

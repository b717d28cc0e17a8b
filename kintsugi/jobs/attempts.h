// The attempts of a run over all jobs, in attempts.jsonl of the run's folder: each start of its ranks by `kintsugi
// launch --with`.
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
  int64_t from = 0;    // step of the newest checkpoint at its start
  int64_t ranks = 0;   // 0: unknown
  std::string nodes;   // "n1,n2"; "": unknown
  // After it ended; unknown: it is running, or was killed together with its launcher.
  Outcome outcome = Outcome::unknown;
  int64_t ended = 0;
  int64_t to = 0;
  std::string why;        // "signal", "a rank was killed: ..."
  bool given_up = false;  // no further attempt was started
};

// Throws UserError for a corrupt line; the last line may be incomplete.
std::vector<Attempt> read_attempts(const std::filesystem::path& run_folder);
void add_begin(const std::filesystem::path& run_folder, const Attempt& attempt);
void add_end(const std::filesystem::path& run_folder, const Attempt& attempt);

// The reason not to start another attempt, with the current step of the newest checkpoint; nothing if there is none.
// Counts from the last attempt that finished the run or gave up: allows at most `max_restarts` after the first, and
// none after two that ended without a new checkpoint.
struct Refusal {
  bool no_progress = false;
  std::string why;
};
std::optional<Refusal> refusal(const std::vector<Attempt>& attempts, int64_t step, int64_t max_restarts);

}  // namespace kintsugi::jobs

// Diagnoses why the ranks of a run ended, from the output of the ranks and of the scheduler's launcher, and decides how
// to continue.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::jobs {

// stop: a retry would fail in the same way. restart: from the newest checkpoint.
enum class Response { stop, restart };

// When the node of the failure is excluded from later attempts.
enum class Blame { never, repeated, at_once };

struct FailureKind {
  std::string_view name;  // "a rank was killed"
  std::string_view text;  // substring of a line; "": any
  Response response;
  Blame blame = Blame::never;
  std::string_view advice = "";  // what the user can do; "": nothing
};

// In order of precedence.
std::span<const FailureKind> failure_kinds();

struct Failure {
  const FailureKind* kind = nullptr;
  std::string line;  // the line that shows it; "": none
};

// Takes lines of stderr from the launcher and the ranks, and how the launcher ended: "code 1", "signal 9".
Failure failure_of(const std::vector<std::string>& lines, std::string_view ended);

// Whether a line reports that the scheduler failed to connect the ranks when they started; they then wait in vain.
bool is_failed_start(std::string_view line);

// The ranks and the node that a launcher names as the first to be lost.
struct Victim {
  std::string ranks;  // "2", "4-7"; "": not named
  std::string node;   // "": not named
};

// From lines of srun, mpirun, PALS' mpiexec, and our own.
Victim victim_of(const std::vector<std::string>& lines);
// The rank that reports the error of a line, "error: rank 2: ..." or "error: [train] rank 2: ..."; without a number it
// is rank 0, which prints what all have. -1 if the line is none of ours.
int reporting_rank(std::string_view line);
std::string in_words(const Victim& victim);  // "rank 2 on n3", "ranks 4-7 on n3", "n3"; "" for none

}  // namespace kintsugi::jobs

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

struct FailureKind {
  std::string_view name;  // "a rank was killed"
  std::string_view text;  // substring of a line; "": any
  Response response;
  std::string_view advice;  // what the user can do; "": nothing
};

// In order of precedence.
std::span<const FailureKind> failure_kinds();

struct Failure {
  const FailureKind* kind = nullptr;
  std::string line;  // the line that shows it; "": none
};

// Takes lines of stderr from the launcher and the ranks, and how the launcher ended: "code 1", "signal 9".
Failure failure_of(const std::vector<std::string>& lines, std::string_view ended);

// Returns "rank 2 on n3" for the victim that srun names in "srun: error: n3: task 2: Killed"; "" if no line does.
std::string victim_of(const std::vector<std::string>& lines);

}  // namespace kintsugi::jobs

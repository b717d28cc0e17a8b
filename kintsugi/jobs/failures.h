// Why the ranks of a run ended, from what they and the scheduler's launcher printed, and what follows from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::jobs {

// stop: it would fail again in the same way. restart: from the newest checkpoint.
enum class Response { stop, restart };

struct FailureKind {
  std::string_view name;  // "a rank was killed"
  std::string_view text;  // what a line holds; "" any
  Response response;
  std::string_view advice;  // what a user may do; "" nothing
};

// In the order in which they are looked for.
std::span<const FailureKind> failure_kinds();

struct Failure {
  const FailureKind* kind = nullptr;
  std::string line;  // that says it; "" if none does
};

// Of the lines of the launcher's and the ranks' errors, and how the launcher ended: "code 1", "signal 9".
Failure failure_of(const std::vector<std::string>& lines, std::string_view ended);

// "rank 2 on n3": the victim that srun names in "srun: error: n3: task 2: Killed"; "" if no line does.
std::string victim_of(const std::vector<std::string>& lines);

}  // namespace kintsugi::jobs

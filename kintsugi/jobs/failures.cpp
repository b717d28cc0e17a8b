#include "kintsugi/jobs/failures.h"

#include <fmt/format.h>

#include <array>

namespace kintsugi::jobs {

// Errors that would recur come first: ranks that end after one are killed too, and a dead rank makes others report
// errors.
std::span<const FailureKind> failure_kinds() {
  using enum Response;
  static constexpr std::array<FailureKind, 15> kKinds = {{
      {"another process trains in the run's folder", "another process trains in", stop,
       "wait for it, or end it, and start again"},
      {"the loss or the gradient is not finite", "is not finite", stop, "lower train.learning_rate"},
      {"the disk is full", "No space left on device", stop, "make room, and start again"},
      {"the quota is used up", "Disk quota exceeded", stop, "make room, and start again"},
      {"the ranks do not find each other", "error: [launch]", stop, ""},
      {"the configuration is wrong", "error: [config]", stop, "kintsugi check prints it"},
      {"the ranks' memory is used up", "oom-kill", restart, "kintsugi plan prints what a rank needs"},
      {"the ranks' memory is used up", "oom_kill", restart, "kintsugi plan prints what a rank needs"},
      {"a node was lost", "NODE FAIL", restart, ""},
      {"a node was lost", "Node failure", restart, ""},
      {"a rank was lost", "error: [comm]", restart, ""},
      {"an error of the run", "error: [", stop, ""},
      {"an error of the run", "error: rank ", stop, ""},
      {"a rank was killed", "Killed", restart, ""},
      {"the ranks ended", "", restart, ""},
  }};
  return kKinds;
}

Failure failure_of(const std::vector<std::string>& lines, std::string_view ended) {
  for (const FailureKind& kind : failure_kinds()) {
    if (kind.text.empty()) return {&kind, std::string(ended)};
    for (const std::string& line : lines)
      if (line.find(kind.text) != std::string::npos) return {&kind, line};
  }
  return {&failure_kinds().back(), std::string(ended)};
}

std::string victim_of(const std::vector<std::string>& lines) {
  constexpr std::string_view kBegin = "srun: error: ";
  for (const std::string& line : lines) {
    const size_t begin = line.find(kBegin);
    if (begin == std::string::npos) continue;
    const size_t task = line.find(": task", begin);
    const size_t colon = task == std::string::npos ? task : line.find(':', task + 2);
    if (colon == std::string::npos || line.find("Killed", colon) == std::string::npos) continue;
    const std::string node = line.substr(begin + kBegin.size(), task - begin - kBegin.size());
    std::string ranks = line.substr(task + 6, colon - task - 6);
    const bool several = ranks.starts_with("s ");
    ranks.erase(0, several ? 2 : 1);
    return fmt::format("rank{} {} on {}", several ? "s" : "", ranks, node);
  }
  return "";
}

}  // namespace kintsugi::jobs

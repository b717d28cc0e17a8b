#include "kintsugi/jobs/failures.h"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace kintsugi::jobs {
namespace {

// Slurm's PMIx, if a node is slow to start its part: "mpi/pmix_v4: pmixp_p2p_send: ... exceeded the retry limit". The
// ranks then wait for each other.
constexpr std::string_view kFailedStart = "exceeded the retry limit";

}  // namespace

bool is_failed_start(std::string_view line) {
  return line.find(kFailedStart) != line.npos;
}

// Errors that would recur come first: ranks that end after one are killed too, and a dead rank makes others report
// errors. Lost nodes come before lost ranks for the same reason.
std::span<const FailureKind> failure_kinds() {
  using enum Response;
  using enum Blame;
  static constexpr std::array kKinds = {
      FailureKind{"another process trains in the run's folder", "another process trains in", stop, never,
                  "wait for it, or end it, and start again"},
      FailureKind{"the loss or the gradient is not finite", "is not finite", stop, never, "lower train.learning_rate"},
      FailureKind{"the disk is full", "No space left on device", stop, never, "make room, and start again"},
      FailureKind{"the quota is used up", "Disk quota exceeded", stop, never, "make room, and start again"},
      FailureKind{"the file system is read-only", "Read-only file system", stop, never, "set another train.folder"},
      FailureKind{"a node computes wrong results", "computes wrong results", restart, at_once},
      FailureKind{"a node has faulty memory", "uncorrectable ECC", restart, at_once},
      FailureKind{"replicas differ", "is not the same on rank", restart, repeated},
      FailureKind{"the clocks of nodes differ", "the clock of ", stop},
      FailureKind{"the ranks do not find each other", "error: [launch]", stop},
      FailureKind{"the configuration is wrong", "error: [config]", stop, never, "kintsugi check prints it"},
      FailureKind{"the ranks' memory is used up", "oom-kill", restart, never, "kintsugi plan prints what a rank needs"},
      FailureKind{"the ranks' memory is used up", "oom_kill", restart, never, "kintsugi plan prints what a rank needs"},
      FailureKind{"the ranks' memory is used up", "Out Of Memory", restart, never,
                  "kintsugi plan prints what a rank needs"},
      FailureKind{"a node was lost", "NODE FAIL", restart, at_once},
      FailureKind{"a node was lost", "Node failure", restart, at_once},
      FailureKind{"a node was lost", "no sign of life from any rank on ", restart, at_once},
      FailureKind{"a node does not start ranks", "Communication connection failure", restart, at_once},
      FailureKind{"the start of the ranks failed", kFailedStart, restart},
      FailureKind{"a rank was lost", "no sign of life from rank", restart, repeated},
      FailureKind{"a rank was killed", "Killed", restart, repeated},
      FailureKind{"a rank was killed", "died from signal", restart, repeated},
      FailureKind{"a rank crashed", "Segmentation fault", restart, repeated},
      FailureKind{"a rank crashed", "Bus error", restart, repeated},
      FailureKind{"the file system failed", "Stale file handle", restart},
      FailureKind{"the file system failed", "Input/output error", restart},
      FailureKind{"the file system failed", "Transport endpoint is not connected", restart},
      FailureKind{"a rank was lost", "error: [comm]", restart},
      FailureKind{"an error of the run", "error: [", stop},
      FailureKind{"an error of the run", "error: rank ", stop},
      FailureKind{"the ranks ended", "", restart},
  };
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

namespace {

// The text between two others; nothing if they do not follow each other. An empty `end`: to a space or the end.
std::optional<std::string> between(std::string_view line, std::string_view begin, std::string_view end) {
  const size_t at = line.find(begin);
  if (at == line.npos) return std::nullopt;
  const size_t from = at + begin.size();
  const size_t to = end.empty() ? std::min(line.find_first_of(" :,;", from), line.size()) : line.find(end, from);
  if (to == line.npos || to == from) return std::nullopt;
  return std::string(line.substr(from, to - from));
}

bool has(std::string_view line, std::string_view text) {
  return line.find(text) != line.npos;
}

// "srun: error: n3: task 2: Killed", "srun: error: n3: tasks 4-7: Bus error"
std::optional<Victim> of_srun(std::string_view line) {
  if (!has(line, "Killed") && !has(line, "Segmentation fault") && !has(line, "Bus error")) return std::nullopt;
  const auto node = between(line, "srun: error: ", ": task");
  if (!node) return std::nullopt;
  auto ranks = between(line, ": task ", ":");
  if (!ranks) ranks = between(line, ": tasks ", ":");
  return Victim{ranks.value_or(""), *node};
}

// "srun: error: Node failure on n3"
std::optional<Victim> of_lost_node(std::string_view line) {
  const auto node = between(line, "Node failure on ", "");
  return node ? std::optional(Victim{"", *node}) : std::nullopt;
}

// "srun: error: Task launch for StepId=3.0 failed on node n3: Communication connection failure"
std::optional<Victim> of_failed_launch(std::string_view line) {
  const auto node = has(line, "Communication connection failure") ? between(line, "failed on node ", "") : std::nullopt;
  return node ? std::optional(Victim{"", *node}) : std::nullopt;
}

// "mpirun noticed that process rank 2 with PID 81 on node n3 exited on signal 9 (Killed)."
std::optional<Victim> of_mpirun(std::string_view line) {
  const auto rank = between(line, "process rank ", " with PID");
  const auto node = between(line, " on node ", " exited");
  return rank && node ? std::optional(Victim{*rank, *node}) : std::nullopt;
}

// "x3006c0s13b1n0: rank 2 died from signal 9"
std::optional<Victim> of_pals(std::string_view line) {
  const auto rank = between(line, ": rank ", " died from signal");
  return rank ? std::optional(Victim{*rank, std::string(line.substr(0, line.find(':')))}) : std::nullopt;
}

// "launch: no sign of life from rank 2 on n3 for 60 s", "launch: no sign of life from any rank on n3 for 60 s"
std::optional<Victim> of_launch(std::string_view line) {
  const auto node = between(line, " on ", "");
  if (!has(line, "no sign of life from ") || !node) return std::nullopt;
  return Victim{between(line, "from rank ", " on ").value_or(""), *node};
}

// "error: [launch] rank 2 on n3 computes wrong results: ..."
std::optional<Victim> of_check(std::string_view line) {
  const auto node = has(line, "computes wrong results") ? between(line, " on ", "") : std::nullopt;
  return node ? std::optional(Victim{between(line, "rank ", " on ").value_or(""), *node}) : std::nullopt;
}

// "... is not the same on rank 2 (n3) as on ranks 0 1 3"
std::optional<Victim> of_replicas(std::string_view line) {
  const auto rank = between(line, "is not the same on rank ", " (");
  const auto node = rank ? between(line, "rank " + *rank + " (", ")") : std::nullopt;
  return node ? std::optional(Victim{*rank, *node}) : std::nullopt;
}

}  // namespace

Victim victim_of(const std::vector<std::string>& lines) {
  for (const auto& read :
       {of_check, of_replicas, of_lost_node, of_failed_launch, of_launch, of_srun, of_mpirun, of_pals})
    for (const std::string& line : lines)
      if (const auto victim = read(line)) return *victim;
  return {};
}

int reporting_rank(std::string_view line) {
  const size_t error = line.find("error: ");
  if (error == line.npos) return -1;
  std::string_view rest = line.substr(error + 7);
  const bool ours = rest.starts_with('[');
  if (ours) rest = rest.substr(std::min(rest.size(), rest.find("] ") + 2));
  const auto number = rest.starts_with("rank ") ? between(rest, "rank ", ":") : std::nullopt;
  if (number && !number->empty() && number->size() < 8 && number->find_first_not_of("0123456789") == number->npos)
    return std::stoi(*number);
  return ours ? 0 : -1;
}

std::string in_words(const Victim& v) {
  if (v.ranks.empty()) return v.node;
  const bool several = v.ranks.find_first_of("-,") != std::string::npos;
  return fmt::format("rank{} {} on {}", several ? "s" : "", v.ranks, v.node);
}

}  // namespace kintsugi::jobs

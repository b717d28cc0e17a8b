// Nodes that a run does not use for a while because of an earlier failure, in suspects.jsonl of the run's folder: one
// line per finding, over all jobs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kintsugi::jobs {

inline constexpr const char* kSuspectsFile = "suspects.jsonl";

struct Suspect {
  std::string node;
  int64_t since = 0;     // seconds since 1970
  int64_t until = 0;     // 0: until the end of the job in which it was found
  std::string job;       // of the scheduler; ""
  std::string why;       // "a node was lost: srun: error: Node failure on n3"
  bool excluded = true;  // false: counted, and excluded at the next finding
};

// Throws UserError for a corrupt line; the last line may be incomplete.
std::vector<Suspect> read_suspects(const std::filesystem::path& run_folder);
void add_suspect(const std::filesystem::path& run_folder, const Suspect& suspect);

// Those that are excluded at `now` in `job`, one per node, with its newest reason.
std::vector<Suspect> excluded(const std::vector<Suspect>& suspects, int64_t now, const std::string& job);

// Whether a finding that excludes a node only when repeated is one of several: an earlier one has not expired.
bool repeated(const std::vector<Suspect>& suspects, const std::string& node, int64_t now, const std::string& job);

}  // namespace kintsugi::jobs

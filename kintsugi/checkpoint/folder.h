// The checkpoints in a run's folder: step_00001000/ and its like, whole or not there; best.json names the best. What is
// half written or half removed has a name that begins with ".part-", and the next save removes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace kintsugi::checkpoint {

struct SavedStep {
  int64_t step = 0;
  std::filesystem::path folder;

  bool operator==(const SavedStep&) const = default;
};

std::filesystem::path step_folder(const std::filesystem::path& run_folder, int64_t step);
std::filesystem::path part_folder(const std::filesystem::path& run_folder, int64_t step);

// By step, the newest last. None where there is no such folder. What they hold is not looked at.
std::vector<SavedStep> list(const std::filesystem::path& run_folder);

// The newest checkpoint whose every checksum holds; each that is skipped is a warning in the log. Reads them whole.
std::optional<SavedStep> newest_whole(const std::filesystem::path& run_folder);

// A checkpoint's folder as it is, or the newest whole one of a run's folder. UserError where there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

struct Best {
  int64_t step = 0;
  double validation_loss = 0.0;  // finite

  bool operator==(const Best&) const = default;
};

void write_best(const std::filesystem::path& run_folder, const Best& best);
std::optional<Best> read_best(const std::filesystem::path& run_folder);  // UserError where best.json is damaged

// Removes all but the newest `keep` (at least 1) and the best, the oldest first. One that does not open neither counts
// nor goes. A kill in between leaves whole checkpoints and leftovers.
void prune(const std::filesystem::path& run_folder, int64_t keep);

// Removes what a save or a removal that was killed has left. No other save may be under way.
void remove_leftovers(const std::filesystem::path& run_folder);

// Renames a finished folder to `to`, durably. A folder that is there already is replaced in one step where the file
// system can, and removed.
void move_into_place(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace kintsugi::checkpoint

// The checkpoints in a run's folder, step_00001000/ and so on, each complete or absent; best.json names the best. A
// partly written or partly removed folder has a name that begins with ".part-"; the next save removes it.
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

// Sorted by step, the newest last; empty if the folder does not exist. Does not check their contents.
std::vector<SavedStep> list(const std::filesystem::path& run_folder);

// The newest checkpoint whose checksums are all correct; logs a warning for each that is skipped. Reads them
// completely.
std::optional<SavedStep> newest_whole(const std::filesystem::path& run_folder);

struct Best {
  int64_t step = 0;
  double validation_loss = 0.0;  // finite

  bool operator==(const Best&) const = default;
};

void write_best(const std::filesystem::path& run_folder, const Best& best);
std::optional<Best> read_best(const std::filesystem::path& run_folder);  // UserError if best.json is damaged
void remove_best(const std::filesystem::path& run_folder);

// Removes all but the newest `keep` (at least 1) and the best, oldest first. Checkpoints that cannot be opened are
// neither counted nor removed, and those that cannot be removed cause a warning. If killed midway, leaves complete
// checkpoints and leftovers.
void prune(const std::filesystem::path& run_folder, int64_t keep);

// Removes the leftovers of a killed save or removal; those that cannot be removed cause a warning. No other save may be
// in progress.
void remove_leftovers(const std::filesystem::path& run_folder);

// Durably renames a finished folder to `to`. An existing folder is replaced (atomically if the file system supports it)
// and removed.
void move_into_place(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace kintsugi::checkpoint

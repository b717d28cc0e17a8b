// The checkpoints in a run's folder: step_00001000/ and so on, each complete or absent; best.json names the best. A
// folder that is partly written or partly removed has a name that begins with ".part-", and the next save removes it.
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

// By step, the newest last. Empty if the folder does not exist. Their contents are not checked.
std::vector<SavedStep> list(const std::filesystem::path& run_folder);

// The newest checkpoint all of whose checksums are correct; a warning is logged for each that is skipped. Reads them
// completely.
std::optional<SavedStep> newest_whole(const std::filesystem::path& run_folder);

struct Best {
  int64_t step = 0;
  double validation_loss = 0.0;  // finite

  bool operator==(const Best&) const = default;
};

void write_best(const std::filesystem::path& run_folder, const Best& best);
std::optional<Best> read_best(const std::filesystem::path& run_folder);  // UserError where best.json is damaged
void remove_best(const std::filesystem::path& run_folder);

// Removes all but the newest `keep` (at least 1) and the best, the oldest first. One that cannot be opened is neither
// counted nor removed, and one that cannot be removed is a warning. If killed in between, it leaves complete checkpoints
// and leftovers.
void prune(const std::filesystem::path& run_folder, int64_t keep);

// Removes the leftovers of a save or a removal that was killed; one that cannot be removed is a warning. No other save may
// be in progress.
void remove_leftovers(const std::filesystem::path& run_folder);

// Renames a finished folder to `to`, durably. An existing folder is replaced atomically if the file system supports
// it, and removed.
void move_into_place(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace kintsugi::checkpoint

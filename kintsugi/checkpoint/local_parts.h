// The parts of a checkpoint in folders on the nodes: what each rank has staged, and copies of the parts of ranks on
// other nodes. A run that ended before all parts were in its folder continues from them. A part is two files, of which
// the second describes the first and is written last:
//   kintsugi_RUN_rank_00002.safetensors, kintsugi_RUN_rank_00002.json   staged by rank 2
//   kintsugi_RUN_copy_00002.safetensors, kintsugi_RUN_copy_00002.json   a copy of it on another node
// RUN is a checksum of the path of the run's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/checkpoint/writer.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::checkpoint {

enum class LocalKind : uint8_t { staged, copy };

struct LocalPart {
  std::filesystem::path file = {};
  int64_t step = 0;
  int rank = 0, ranks = 1;                // of the run that saved
  uint64_t bytes = 0;                     // of the file
  std::string list = {};                  // its index, as the writer prints it
  std::optional<Contents> contents = {};  // of rank 0
};

std::filesystem::path local_file(const std::filesystem::path& local, const std::filesystem::path& run_folder, int rank,
                                 LocalKind kind);
std::filesystem::path description_file(const std::filesystem::path& file);

std::string describe(const LocalPart& part);
// Writes the description of `file`, not synced: it need not survive a crash of the node.
void write_description(const std::filesystem::path& file, const std::string& description);

// The parts of this run in `local` whose files are complete. Files that cannot be read are left out.
std::vector<LocalPart> local_parts(const std::filesystem::path& local, const std::filesystem::path& run_folder);

// Removes the two files of a part.
void remove_part(const std::filesystem::path& file) noexcept;

// Copies the parts of the newest checkpoint that is newer than those in the run's folder, and of which each part is on
// some rank's node, to the run's folder; returns its step. Its bytes are not verified. Afterwards the nodes hold no
// parts that the folder makes superfluous. If a copy fails, returns nothing and rank 0 logs why. Collective; no save
// may be in progress.
std::optional<int64_t> recover_local_parts(const std::filesystem::path& run_folder, const std::filesystem::path& local,
                                           comm::Communicator& all);

}  // namespace kintsugi::checkpoint

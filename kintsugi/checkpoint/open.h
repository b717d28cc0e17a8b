// Opens a checkpoint on all ranks of a run, which share a file system. Every function is collective and has the same
// result or error on all ranks.
#pragma once

#include <filesystem>
#include <memory>

#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::checkpoint {

// The newest checkpoint whose checksums are all correct, or null; rank 0 logs a warning for each that is skipped. Each
// rank verifies its share of the bytes, and none is verified twice. A checkpoint that a running job removes meanwhile
// is not an error: a newer one then exists, and is opened. The checkpoint is held (CheckpointReader::hold). Throws
// UserError if ranks find different checkpoints under the same name.
std::unique_ptr<CheckpointReader> open_newest_whole(const std::filesystem::path& run_folder, comm::Communicator& all);

// `path` itself if it is a checkpoint's folder, else the newest complete checkpoint of a run's folder. Throws UserError
// if there is none, or if ranks find different checkpoints under the same name.
std::unique_ptr<CheckpointReader> open_checkpoint(const std::filesystem::path& path, comm::Communicator& all);

}  // namespace kintsugi::checkpoint

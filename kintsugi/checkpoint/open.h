// Opening a checkpoint on all ranks of a run, which see one file system. All ranks call together and get the same
// result or the same error.
#pragma once

#include <filesystem>
#include <memory>

#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::checkpoint {

// The newest checkpoint all of whose checksums are correct, or null; rank 0 logs a warning for each that is skipped.
// UserError if ranks find another one under its name.
// Each rank reads its share of the bytes to check them; none are checked twice. One that a run removes meanwhile is no
// damage, since there is a newer one then: that is opened. The checkpoint is held (CheckpointReader::hold).
std::unique_ptr<CheckpointReader> open_newest_whole(const std::filesystem::path& run_folder, comm::Communicator& all);

// `path` itself if it is a checkpoint's folder, or the newest complete checkpoint of a run's folder. UserError if
// there is none, or if ranks find another one under its name.
std::unique_ptr<CheckpointReader> open_checkpoint(const std::filesystem::path& path, comm::Communicator& all);

}  // namespace kintsugi::checkpoint

// Opening a checkpoint on all ranks of a run, which see one file system. All ranks call together and get the same; an
// error of one is that of all.
#pragma once

#include <filesystem>
#include <memory>

#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::checkpoint {

// The newest checkpoint whose every checksum holds, or null; each that is skipped is a warning in the log of rank 0.
// Each rank reads its share of the bytes to check them, and none checks again what another has.
std::unique_ptr<CheckpointReader> open_newest_whole(const std::filesystem::path& run_folder, comm::Communicator& all);

// A checkpoint's folder as it is, or the newest whole one of a run's folder. UserError where there is none.
std::unique_ptr<CheckpointReader> open_checkpoint(const std::filesystem::path& path, comm::Communicator& all);

}  // namespace kintsugi::checkpoint

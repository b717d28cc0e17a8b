// The states of a program to and from a checkpoint. A weight is stored under its name as its master copy, in the dtype
// of the master; moments and numbers of the run under theirs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/writer.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::checkpoint {

// Returns the checkpoint's folder.
std::filesystem::path save_states(const run::Executor& executor, const std::filesystem::path& run_folder, int64_t step,
                                  const Contents& contents);

// All that is saved, or the weights alone (the rest keeps its beginning). UserError naming a weight that is missing or
// has other dims.
enum class Load { everything, weights };
void load_states(run::Executor& executor, const CheckpointReader& reader, Load what);

}  // namespace kintsugi::checkpoint

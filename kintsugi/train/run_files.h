// The files of a run, none of which may be replaced by a result that is asked for.
#pragma once

#include <filesystem>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::train {

// What the run reads and what it has written: token files and what lies beside them, the configuration, metrics and
// checkpoints of its folder, and the checkpoint that it begins from. Some may not exist.
std::vector<std::filesystem::path> files_of(const config::Settings& settings);

}  // namespace kintsugi::train

// The files of a run, which no requested output may overwrite.
#pragma once

#include <filesystem>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::train {

// What the run reads and has written: token files and their companions, the configuration, metrics and checkpoints in
// its folder, and the checkpoint that it begins from. Some may not exist.
std::vector<std::filesystem::path> files_of(const config::Settings& settings);

}  // namespace kintsugi::train

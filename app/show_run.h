// What `show` prints for a run.toml.
#pragma once

#include <filesystem>

namespace kintsugi::app {

// What the file is, what it says of the run, and whether the run has begun. UserError if it is no configuration.
void show_run(const std::filesystem::path& path);

}  // namespace kintsugi::app

// What `show` prints for a run.toml.
#pragma once

#include <filesystem>

namespace kintsugi::app {

// The kind of file, a summary of the run, and whether the run has started. UserError if it is not a configuration.
void show_run(const std::filesystem::path& path);

}  // namespace kintsugi::app

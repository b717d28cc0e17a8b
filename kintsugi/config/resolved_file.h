// The whole configuration as a file: every key, and in a comment where its value came from.
#pragma once

#include <filesystem>
#include <string>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// TOML from which read_text makes the same settings.
std::string to_toml(const Resolved& resolved);

// The configuration that a run saved at `path` (what to_toml wrote). Values are as they were then, `threads` too.
Resolved load_saved(const std::filesystem::path& path);

}  // namespace kintsugi::config

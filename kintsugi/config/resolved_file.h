// The whole configuration as a file: every key, with the origin of its value in a comment.
#pragma once

#include <filesystem>
#include <string>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// TOML from which read_text makes the same settings.
std::string to_toml(const Resolved& resolved);

// The configuration that a run saved at `path` (what to_toml wrote). It was checked when it was written, and another
// build may have derived other values (ranks, say), so it is not checked here. Keys that it lacks, because it is
// older, are derived by the current rules.
Resolved load_saved(const std::filesystem::path& path, const Catalog& catalog);
// The same from the text itself.
Resolved saved_text(const std::string& toml, const Catalog& catalog,
                    const std::string& name = "the configuration of rank 0");

}  // namespace kintsugi::config

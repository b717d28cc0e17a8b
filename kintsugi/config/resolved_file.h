// The whole configuration as a file: every key, with the origin of its value in a comment.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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

// The origins that to_toml wrote beside the values, "default" or "run.toml:7", by index in keys(); "" where `toml` has
// none for this value of the settings.
std::vector<std::string> written_origins(const std::string& toml, const Settings& settings);
// Whether such an origin says that the user gave the value.
bool says_given(std::string_view origin);

}  // namespace kintsugi::config

// Writes the complete configuration as a file: every key, with the origin of its value in a comment.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// TOML that read_text() reads back to the same settings.
std::string to_toml(const Resolved& resolved);

// Reads the configuration that a run saved at `path` (the output of to_toml()). It was checked when it was written, and
// another build may derive other values (ranks, say), so it is not checked again. Keys missing from an older file are
// derived by the current rules.
Resolved load_saved(const std::filesystem::path& path, const Catalog& catalog);
// As load_saved(), from the text itself.
Resolved saved_text(const std::string& toml, const Catalog& catalog,
                    const std::string& name = "the configuration of rank 0");

// The origins that to_toml() wrote next to the values, "default" or "run.toml:7", indexed as keys(); "" if `toml` has
// none for this value.
std::vector<std::string> written_origins(const std::string& toml, const Settings& settings);
// Whether such an origin means that the user gave the value.
bool says_given(std::string_view origin);

}  // namespace kintsugi::config

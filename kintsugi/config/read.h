// Reads run.toml and --set options into settings with origins.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// Precedence: `sets` ("section.key=value", later ones first) over `text` over the named size or folder over defaults.
// `name` is the file's name for messages. Throws UserError for the first error in text order, or else for a family or
// size that the catalog lacks. `catalog` must outlive the result.
Given read_text(std::string_view text, std::string_view name, const Catalog& catalog,
                std::span<const std::string> sets = {});
Given read_file(const std::filesystem::path& path, const Catalog& catalog, std::span<const std::string> sets = {});

}  // namespace kintsugi::config

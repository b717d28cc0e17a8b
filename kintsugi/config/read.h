// Reads run.toml and the --set options into settings with their origins.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// Precedence: `sets` ("section.key=value", the later over the earlier) over `text` over the named size or folder over
// defaults. `name` is that of the file, for messages. The first error in the order of the text is thrown as UserError;
// then that of a family or size which the catalog lacks. The catalog must outlive what is returned.
Given read_text(std::string_view text, std::string_view name, const Catalog& catalog,
                std::span<const std::string> sets = {});
Given read_file(const std::filesystem::path& path, const Catalog& catalog, std::span<const std::string> sets = {});

}  // namespace kintsugi::config

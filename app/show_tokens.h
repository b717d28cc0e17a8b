// The contents of a token file in readable form.
#pragma once

#include <filesystem>

namespace kintsugi::app {

// Prints it. `path` is the pair's name with or without .bin or .idx. Throws base::UserError if the pair is damaged.
void show_tokens(const std::filesystem::path& path);

}  // namespace kintsugi::app

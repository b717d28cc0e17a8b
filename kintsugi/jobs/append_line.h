// Appends to the line-by-line records of a run.
#pragma once

#include <filesystem>
#include <string>

namespace kintsugi::jobs {

// In a single write, so that the line is complete or absent unless the disk is full. Throws UserError.
void append_line(const std::filesystem::path& path, const std::string& line);

}  // namespace kintsugi::jobs

// Output files that the user names, such as --csv FILE.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace kintsugi::base {

struct Output {
  std::string_view option;     // "--csv"
  std::filesystem::path path;  // "": not given
};

// Throws UserError "[where] ..." if an output is one of `inputs`, the files of a run, under any name, or if two outputs
// are the same file. Ignores inputs that do not exist.
void refuse_inputs(std::string_view where, std::span<const Output> outputs,
                   std::span<const std::filesystem::path> inputs);

// Resolves all symlinks; the target need not exist. Throws UserError for a loop.
std::filesystem::path target_of(const std::filesystem::path& path);

// Replaces a regular file (or the target of a symlink) atomically, or creates it. Writes in place to anything else (a
// device, a FIFO), and to a file that is already standard output or standard error. Throws UserError on any failure.
void write_output(const std::filesystem::path& path, std::string_view content);

}  // namespace kintsugi::base

// Files that the user names for a result, such as --csv FILE.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace kintsugi::base {

struct Output {
  std::string_view option;     // "--csv"
  std::filesystem::path path;  // "": the option is not given
};

// UserError "[where] ..." where an output is one of `inputs`, which are files of a run, under whatever name, or two
// outputs are one file. Inputs that do not exist count for nothing.
void refuse_inputs(std::string_view where, std::span<const Output> outputs,
                   std::span<const std::filesystem::path> inputs);

// A regular file is replaced atomically, or made; of a symlink, its target. What is something else (a device, a FIFO)
// is written to as it is, and so is the file that is standard output or standard error already. UserError if anything
// cannot be written.
void write_output(const std::filesystem::path& path, std::string_view content);

}  // namespace kintsugi::base

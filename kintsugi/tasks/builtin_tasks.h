// The files of `tasks/`, embedded at build time; CMakeLists.txt generates their source.
#pragma once

#include <span>
#include <string_view>

namespace kintsugi::tasks {

struct BuiltinTask {
  std::string_view name;  // of the file, without ".json"
  std::string_view content;
};

// Sorted by name.
std::span<const BuiltinTask> builtin_tasks();

}  // namespace kintsugi::tasks

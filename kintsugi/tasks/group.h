// Several tasks that are evaluated together. docs/tasks.md describes the files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/tasks/task.h"

namespace kintsugi::tasks {

struct Group {
  std::string name;
  std::vector<Task> tasks;
  bool single = false;  // a task that is no group
};

// Loads a built-in group or task, or a file of either. Throws UserError for an unknown name, and for a file that is
// neither.
Group load_group(const std::string& name_or_path);
// Parses the content of a file; `name` names it in errors.
Group parse_group(std::string_view content, std::string_view name);

}  // namespace kintsugi::tasks

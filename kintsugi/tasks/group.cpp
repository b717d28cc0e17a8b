#include "kintsugi/tasks/group.h"

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::tasks {
namespace {

using base::Json;

void require_known_members(const Json& object, std::span<const std::string_view> names) {
  for (const Json& member : object.members())
    if (std::ranges::find(names, member.key()) == names.end())
      object.fail("unknown member \"{}\"; did you mean \"{}\"?", member.key(), base::nearest(member.key(), names));
}

// A task of the group: one with another name, file, delimiter, number of examples or chance.
Task read_member(const Json& source) {
  constexpr std::array<std::string_view, 6> kMembers = {"name", "like", "file", "delimiter", "shots", "chance"};
  require_known_members(source, kMembers);
  Task task = load_task(std::string(source.at("like").text()));
  if (const auto name = source.find("name")) task.name = name->text();
  if (const auto file = source.find("file")) task.files = {std::string(file->text())};
  if (const auto delimiter = source.find("delimiter"))
    for (Form& form : task.forms) form.delimiter = delimiter->text();
  read_shots_and_chance(source, task);
  if (!task.chance || std::ranges::count(task.metrics, Metric::centered_accuracy) > 0) return task;
  if (task.kind == Kind::text) source.at("chance").fail("texts have no accuracy");
  task.metrics.insert(task.metrics.begin() + 1, Metric::centered_accuracy);
  return task;
}

}  // namespace

Group parse_group(std::string_view content, std::string_view name) {
  const Json source = Json::parse("tasks", name, content);
  if (!source.is_object() || !source.has("tasks")) {
    Task task = parse_task(content, name);
    return {.name = task.name, .tasks = {std::move(task)}, .single = true};
  }
  constexpr std::array<std::string_view, 3> kMembers = {"name", "source", "tasks"};
  require_known_members(source, kMembers);
  Group group = {.name = std::string(source.at("name").text()), .tasks = {}};
  for (const Json& member : source.at("tasks").list()) {
    Task task = read_member(member);
    if (std::ranges::count(group.tasks, task.name, &Task::name) > 0) member.fail("there is another \"{}\"", task.name);
    group.tasks.push_back(std::move(task));
  }
  if (group.tasks.empty()) source.at("tasks").refuse("a list of tasks");
  return group;
}

Group load_group(const std::string& name_or_path) {
  const TaskFile file = read_task_file(name_or_path);
  return parse_group(file.content, file.name);
}

}  // namespace kintsugi::tasks

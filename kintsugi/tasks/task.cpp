#include "kintsugi/tasks/task.h"

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/tasks/builtin_tasks.h"

namespace kintsugi::tasks {
namespace {

using base::Json;

struct MetricName {
  Metric metric;
  std::string_view name;
};
constexpr std::array<MetricName, 8> kMetricNames = {{{Metric::accuracy, "acc"},
                                                     {Metric::normalized_accuracy, "acc_norm"},
                                                     {Metric::token_accuracy, "acc_token"},
                                                     {Metric::centered_accuracy, "centered"},
                                                     {Metric::perplexity, "perplexity"},
                                                     {Metric::word_perplexity, "word_perplexity"},
                                                     {Metric::byte_perplexity, "byte_perplexity"},
                                                     {Metric::bits_per_byte, "bits_per_byte"}}};

bool measures(Metric metric, Kind kind) {
  switch (metric) {
    case Metric::accuracy:
    case Metric::centered_accuracy:
      return kind != Kind::text;
    case Metric::normalized_accuracy:
    case Metric::token_accuracy:
      return kind == Kind::choices;
    case Metric::perplexity:
      return kind == Kind::continuation;
    case Metric::word_perplexity:
    case Metric::byte_perplexity:
    case Metric::bits_per_byte:
      return kind == Kind::text;
  }
  return false;
}

// Throws UserError for a member with another name.
void require_members(const Json& object, std::initializer_list<std::string_view> names) {
  for (const Json& member : object.members())
    if (std::ranges::find(names, member.key()) == names.end())
      object.fail("unknown member \"{}\"; did you mean \"{}\"?", member.key(), base::nearest(member.key(), names));
}

Texts read_texts(const Json& source) {
  Texts texts;
  if (source.is_text()) {
    texts.templates.emplace_back(source);
  } else if (source.is_list()) {
    for (const Json& one : source.list()) texts.templates.emplace_back(one);
    if (texts.templates.empty()) source.refuse("a template, or a list of them");
  } else {
    require_members(source, {"each", "text", "filter"});
    if (const auto each = source.find("each")) texts.each = std::string(each->text());
    texts.templates.emplace_back(source.at("text"));
    if (const auto filter = source.find("filter")) texts.filter = parse_filter(*filter, filter->text());
  }
  return texts;
}

Label read_label(const Json& source) {
  Label label;
  require_members(source, {"fixed", "position", "key", "keys", "lines", "first"});
  if (const auto fixed = source.find("fixed")) label.fixed = fixed->whole();
  if (const auto position = source.find("position")) label.position = Template(*position);
  if (const auto key = source.find("key")) {
    label.key = Template(*key);
    label.keys = read_texts(source.at("keys"));
  }
  if (const auto lines = source.find("lines")) label.lines = lines->text();
  if (const auto first = source.find("first")) label.first = first->whole();
  const int given = int{label.fixed.has_value()} + int{label.position.has_value()} + int{label.key.has_value()} +
                    int{!label.lines.empty()};
  if (given != 1) source.fail("a label is one of \"fixed\", \"position\", \"key\" with \"keys\", and \"lines\"");
  return label;
}

Form read_form(const Json& source, Kind kind) {
  Form form;
  require_members(source, {"needs", "id", "context", "choices", "continuation", "text", "counted", "delimiter",
                           "before_choice", "label"});
  for (const Json& path : source.at("needs").list()) form.needs.emplace_back(path.text());
  if (const auto id = source.find("id")) form.id = id->text();
  if (kind == Kind::text) {
    form.choices = read_texts(source.at("text"));
    form.counted = source.find("counted") ? read_texts(source.at("counted")) : form.choices;
    form.label.fixed = 0;
    form.before_choice = "";
    for (const Texts* texts : {&form.choices, &form.counted})
      if (texts->each || texts->templates.size() != 1) source.at("text").refuse("one template");
    return form;
  }
  form.contexts = read_texts(source.at("context"));
  if (const auto delimiter = source.find("delimiter")) form.delimiter = delimiter->text();
  if (const auto between = source.find("before_choice")) form.before_choice = between->text();
  if (kind == Kind::choices) {
    form.choices = read_texts(source.at("choices"));
    form.label = read_label(source.at("label"));
  } else {
    form.choices = read_texts(source.at("continuation"));
    form.label.fixed = 0;
    if (form.choices.each || form.choices.templates.size() != 1) source.at("continuation").refuse("one template");
  }
  return form;
}

Kind read_kind(const Json& source) {
  if (source.text() == "choices") return Kind::choices;
  if (source.text() == "continuation") return Kind::continuation;
  if (source.text() == "text") return Kind::text;
  source.refuse("\"choices\", \"continuation\" or \"text\"");
}

Scored read_scored(const Json& source, Kind kind) {
  if (source.text() == "continuation") return Scored::continuation;
  if (kind == Kind::choices && source.text() == "after_common_prefix") return Scored::after_common_prefix;
  if (kind == Kind::choices && source.text() == "common_suffix") return Scored::common_suffix;
  source.refuse("\"continuation\", or, of choices, \"after_common_prefix\" or \"common_suffix\"");
}

Metric read_metric(const Json& source, Kind kind) {
  const auto row = std::ranges::find(kMetricNames, source.text(), &MetricName::name);
  std::string known;
  for (const MetricName& m : kMetricNames) known += (known.empty() ? "" : ", ") + std::string(m.name);
  if (row == kMetricNames.end()) source.refuse("one of " + known);
  if (!measures(row->metric, kind))
    source.fail("the metric \"{}\" is not one of {}", row->name,
                kind == Kind::choices        ? "choices"
                : kind == Kind::continuation ? "a continuation"
                                             : "texts");
  return row->metric;
}

}  // namespace

std::string_view name_of(Metric metric) {
  return std::ranges::find(kMetricNames, metric, &MetricName::metric)->name;
}

std::vector<std::string> Texts::render(const Json& record) const {
  std::vector<std::string> texts;
  if (each) {
    for (const Json& one : value_at(record, *each).list()) texts.push_back(templates[0].render(one));
  } else {
    for (const Template& one : templates) texts.push_back(one.render(record));
  }
  if (filter)
    for (std::string& text : texts) text = filtered(*filter, text);
  return texts;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const BuiltinTask& task : builtin_tasks()) names.emplace_back(task.name);
  return names;
}

Task parse_task(std::string_view content, std::string_view name) {
  const Json source = Json::parse("tasks", name, content);
  require_members(source,
                  {"name", "source", "kind", "metrics", "files", "forms", "scored", "begin", "shots", "chance"});
  Task task;
  task.name = source.at("name").text();
  task.kind = read_kind(source.at("kind"));
  for (const Json& metric : source.at("metrics").list()) task.metrics.push_back(read_metric(metric, task.kind));
  if (task.metrics.empty()) source.at("metrics").refuse("a list of metrics");
  if (const auto files = source.find("files"))
    for (const Json& file : files->list()) task.files.emplace_back(file.text());
  for (const Json& form : source.at("forms").list()) task.forms.push_back(read_form(form, task.kind));
  if (task.forms.empty()) source.at("forms").refuse("a list of forms");
  if (const auto scored = source.find("scored")) task.scored = read_scored(*scored, task.kind);
  if (const auto begin = source.find("begin")) task.begin = begin->boolean();
  read_shots_and_chance(source, task);
  if (std::ranges::count(task.metrics, Metric::centered_accuracy) > 0 &&
      (!task.chance || task.metrics[0] == Metric::centered_accuracy))
    source.at("metrics").fail("the metric \"centered\" needs \"chance\", and follows the metric that it centers");
  return task;
}

void read_shots_and_chance(const Json& source, Task& task) {
  constexpr int64_t kMostShots = 1000;
  if (const auto shots = source.find("shots")) {
    if (task.kind == Kind::text) shots->fail("texts have no examples");
    task.drawn_shots = shots->whole(0, kMostShots);
  }
  if (const auto chance = source.find("chance")) {
    task.chance = chance->number();
    if (*task.chance < 0 || *task.chance >= 1) chance->refuse("a number from 0 to below 1");
  }
}

Task load_task(const std::string& name_or_path) {
  const TaskFile file = read_task_file(name_or_path);
  return parse_task(file.content, file.name);
}

TaskFile read_task_file(const std::string& name_or_path) {
  for (const BuiltinTask& task : builtin_tasks())
    if (task.name == name_or_path)
      return {.name = fmt::format("tasks/{}.json", task.name), .content = std::string(task.content)};
  if (name_or_path.ends_with(".json")) {
    constexpr base::MostBytes kMost = {1 << 20, "a task"};
    return {.name = name_or_path, .content = base::read_file(name_or_path, kMost)};
  }
  std::string known;
  const std::vector<std::string> names = task_names();
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  throw base::UserError(
      "tasks", "there is no task {}; did you mean \"{}\"? There are {}; a task of your own is a file NAME.json",
      base::in_quotes(name_or_path), base::nearest(name_or_path, names), known);
}

}  // namespace kintsugi::tasks

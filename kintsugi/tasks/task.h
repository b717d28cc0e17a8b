// Evaluation tasks as data: the requests and the metrics. docs/tasks.md describes the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/tasks/template.h"

namespace kintsugi::tasks {

// choices: choose the most likely of several continuations; continuation: predict the single one; text: predict each
// token of whole texts.
enum class Kind : uint8_t { choices, continuation, text };

// The scored tokens of a request.
enum class Scored : uint8_t {
  continuation,         // what follows the tokens of the context
  after_common_prefix,  // what follows the first tokens that all requests of a document share
  common_suffix,        // the last tokens that all requests of a document share
};

enum class Metric : uint8_t {
  accuracy,             // choices: the most likely one is correct; continuation: each token is the most likely
  normalized_accuracy,  // the same by log-likelihood per character of the choice
  token_accuracy,       // the same by log-likelihood per scored token
  centered_accuracy,    // (a - chance) / (1 - chance), where a is the first metric of the task
  perplexity,           // exp of the mean negative log-likelihood of a continuation
  // For texts: exp of the total negative log-likelihood divided by the number of words, or bytes; and bits per byte.
  word_perplexity,
  byte_perplexity,
  bits_per_byte,
};
std::string_view name_of(Metric metric);

// A list of texts of a record: one template each, or one template applied to each element of a list in the record.
struct Texts {
  std::vector<Template> templates;
  std::optional<std::string> each;  // the path of the list; requires a single template
  std::optional<Filter> filter;     // of each whole text
  std::vector<std::string> render(const base::Json& record) const;
};

// The correct choice.
struct Label {
  std::optional<int64_t> fixed;      // the same for all
  std::optional<Template> position;  // its position, as a number
  std::optional<Template> key;       // equal to one of `keys`
  Texts keys;
  std::string lines;  // positions are lines of a file next to the data: NAME.jsonl has NAME followed by this
  int64_t first = 0;  // the number of the first choice
};

// One of the published formats of a task's records.
struct Form {
  std::vector<std::string> needs;  // paths by which the format is recognized
  std::string id;                  // the path of a record's id, if any
  Texts contexts;                  // one for all choices, or one each
  Texts choices;                   // a single one for a continuation or a text
  Texts counted;                   // of a text: where words and bytes are counted
  std::string delimiter;           // at the end of each context
  std::string before_choice = " ";
  Label label;
};

struct Task {
  std::string name;
  Kind kind = Kind::choices;
  std::vector<Metric> metrics;
  std::vector<std::string> files;  // candidate names within a folder; the first that exists is read
  std::vector<Form> forms;
  Scored scored = Scored::continuation;
  bool begin = false;                       // a special token precedes each request
  std::optional<int64_t> drawn_shots = {};  // examples per document, drawn from the other documents of the file
  std::optional<double> chance = {};        // the accuracy of a guess
};

// The built-in tasks and groups, from the files in `tasks/`.
std::vector<std::string> task_names();

struct TaskFile {
  std::string name;  // for errors
  std::string content;
};
// Reads a built-in task or group, or a file ("mine.json"). Throws UserError for an unknown name.
TaskFile read_task_file(const std::string& name_or_path);

// Loads a built-in task or a file ("mine.json"). Throws UserError for an unknown name, and for a file that is not a
// task.
Task load_task(const std::string& name_or_path);
// Parses the content of a file; `name` names it in errors.
Task parse_task(std::string_view content, std::string_view name);
// Reads the members "shots" and "chance", if present. Throws UserError for values out of range.
void read_shots_and_chance(const base::Json& source, Task& task);

}  // namespace kintsugi::tasks

// Evaluation tasks: what a model is asked and how its answers are counted, as data. docs/tasks.md describes the files.
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

// choices: the model chooses the most likely of several continuations; continuation: there is one, which it should
// predict; text: whole texts, each token of which it should predict.
enum class Kind : uint8_t { choices, continuation, text };

enum class Metric : uint8_t {
  accuracy,             // of choices: the most likely one is right; of a continuation: each token is the most likely
  normalized_accuracy,  // the same by log-likelihood per character of the choice
  perplexity,           // exp of the mean negative log-likelihood of a continuation
  // Of texts: exp of the negative log-likelihood of all over their words, or bytes; and that per byte in bits.
  word_perplexity,
  byte_perplexity,
  bits_per_byte,
};
std::string_view name_of(Metric metric);

// A list of texts of a record: one template for each, or one for each element of a list of the record.
struct Texts {
  std::vector<Template> templates;
  std::optional<std::string> each;  // the path of the list; then there is one template
  std::optional<Filter> filter;     // of each whole text
  std::vector<std::string> render(const base::Json& record) const;
};

// Which choice is right.
struct Label {
  std::optional<int64_t> fixed;      // the same for all
  std::optional<Template> position;  // its position, as a number
  std::optional<Template> key;       // equal to one of `keys`
  Texts keys;
  std::string lines;  // positions are lines of a file beside the data: NAME.jsonl has NAME followed by this
  int64_t first = 0;  // the number of the first choice
};

// One of the forms in which the records of a task are published.
struct Form {
  std::vector<std::string> needs;  // paths by which the form is recognized
  std::string id;                  // the path of a record's own name, which it may lack
  Texts contexts;                  // one for all choices, or one for each
  Texts choices;                   // of a continuation, or a text, one
  Texts counted;                   // of a text: that whose words and bytes are counted
  std::string before_choice = " ";
  Label label;
};

struct Task {
  std::string name;
  Kind kind = Kind::choices;
  std::vector<Metric> metrics;
  std::vector<std::string> files;  // names that a folder of its data may have; the first that exists is read
  std::vector<Form> forms;
};

// The tasks that the program knows, by the files in `tasks/`.
std::vector<std::string> task_names();

// A task that the program knows, or the file of one ("mine.json"). UserError for another name, and for a file that is
// no task.
Task load_task(const std::string& name_or_path);
// From the content of a file; `name` names it in errors.
Task parse_task(std::string_view content, std::string_view name);

}  // namespace kintsugi::tasks

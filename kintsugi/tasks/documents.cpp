#include "kintsugi/tasks/documents.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/data/text_stream.h"
#include "kintsugi/tasks/python_random.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::tasks {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr size_t kMostBytes = size_t{2} << 30;  // of the text of a file

std::string read_text(const fs::path& path) {
  const std::string raw = base::read_file(path, {kMostBytes, "the data of a task"});
  const data::Compression compression = data::compression_of(raw);
  if (compression == data::Compression::none) return raw;
  const auto stream = data::open_text(path, compression);
  std::string text;
  for (std::string part(1 << 20, '\0');;) {
    const size_t count = stream->read(part);
    text.append(part, 0, count);
    if (text.size() > kMostBytes)
      throw base::UserError("tasks", "\"{}\" has more than 2 GiB of text; the data of a task has less", path.string());
    if (count < part.size()) return text;
  }
}

// The lines of a text, without trailing empty ones.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

fs::path file_of(const Task& task, const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  std::string names;
  for (const std::string& name : task.files) {
    for (const char* end : {"", ".gz", ".zst"})
      if (fs::is_regular_file(path / (name + end), error)) return path / (name + end);
    names += (names.empty() ? "" : ", ") + name;
  }
  throw base::UserError("tasks", "the folder \"{}\" holds none of {}; name the file of the task {}", path.string(),
                        names.empty() ? "the task's files" : names, task.name);
}

std::vector<Json> records_of(const std::string& text, const std::string& name) {
  std::vector<Json> records;
  if (without_leading_space(text).starts_with('[')) {
    for (const Json& record : Json::parse("tasks", name, text).list()) records.push_back(record);
  } else {
    int64_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      if (line.empty())
        throw base::UserError("tasks", "\"{}\":{}: the line is empty; each has a JSON object", name, number);
      records.push_back(Json::parse("tasks", name, line, number));
    }
  }
  if (records.empty()) throw base::UserError("tasks", "\"{}\" has no documents", name);
  return records;
}

const Form& form_of(const Task& task, const Json& record) {
  for (const Form& form : task.forms)
    if (std::ranges::all_of(form.needs, [&](const std::string& path) { return has_value_at(record, path); }))
      return form;
  for (const std::string& path : task.forms[0].needs) {
    if (has_value_at(record, path)) continue;
    record.fail("there is no \"{}\", which a record of the task {} has", path, task.name);
  }
  throw base::InternalError("tasks", "no form of {} fits", task.name);
}

// A numeric position among `count` choices.
size_t choice_at(std::string_view text, int64_t first, size_t count, const Json& record) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const int64_t last = first + static_cast<int64_t>(count) - 1;
  if (error != std::errc() || end != text.data() + text.size() || number < first || number > last)
    record.fail("the label {} is not a number from {} to {}", base::in_quotes(text, 40), first, last);
  return static_cast<size_t>(number - first);
}

size_t gold_of(const Label& label, const Json& record, size_t count, std::string_view line) {
  if (label.fixed) {
    if (*label.fixed >= static_cast<int64_t>(count)) record.fail("there are {} choices", count);
    return static_cast<size_t>(*label.fixed);
  }
  if (!label.lines.empty()) return choice_at(line, label.first, count, record);
  if (label.position) return choice_at(label.position->render(record), label.first, count, record);
  const std::string key = label.key->render(record);
  const std::vector<std::string> keys = label.keys.render(record);
  if (keys.size() != count) record.fail("there are {} choices and {} labels", count, keys.size());
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key) return i;
  record.fail("the label {} is that of no choice", base::in_quotes(key, 40));
}

Document read_document(Kind kind, const Form& form, const Json& record, std::string_view line) {
  Document document;
  if (!form.id.empty() && has_value_at(record, form.id)) {
    const Json id = value_at(record, form.id);
    document.id = id.is_text() ? std::string(id.text()) : id.compact();
  }
  if (kind == Kind::text) {
    const std::string counted = form.counted.render(record)[0];
    document.requests.push_back({.context = "", .continuation = form.choices.render(record)[0]});
    document.words = num_words(counted), document.bytes = std::ssize(counted);
    return document;
  }
  const std::vector<std::string> contexts = form.contexts.render(record);
  std::vector<std::string> choices = form.choices.render(record);
  if (choices.empty()) record.fail("there are no choices");
  if (choices.size() == 1 && contexts.size() > 1) choices.resize(contexts.size(), choices[0]);
  if (contexts.size() != 1 && contexts.size() != choices.size())
    record.fail("there are {} contexts for {} choices", contexts.size(), choices.size());
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].empty()) record.fail("choice {} is empty", i + 1);
    document.requests.push_back({.context = contexts[contexts.size() == 1 ? 0 : i] + form.delimiter,
                                 .continuation = form.before_choice + choices[i],
                                 .characters = num_characters(choices[i])});
  }
  document.gold = gold_of(form.label, record, choices.size(), line);
  return document;
}

// NAME.jsonl -> NAME + suffix, in the same folder.
fs::path beside(const fs::path& path, const std::string& suffix) {
  fs::path stem = path.filename();
  if (stem.extension() == ".gz" || stem.extension() == ".zst") stem = stem.stem();
  return path.parent_path() / (stem.stem().string() + suffix);
}

// With its correct continuation.
std::string as_example(const Document& document) {
  const Request& right = document.requests[document.gold];
  return right.context + right.continuation + "\n\n";
}

}  // namespace

void add_shots(const Task& task, std::span<const Document> examples, int64_t shots, std::vector<Document>& documents) {
  if (task.kind == Kind::text)
    throw base::UserError("tasks", "the task {} has no contexts, before which examples could be put", task.name);
  if (task.drawn_shots)
    throw base::UserError("tasks", "the task {} draws its own examples; leave --shots out", task.name);
  if (std::ssize(examples) < shots)
    throw base::UserError("tasks", "there are {} examples; {} are asked for", examples.size(), shots);
  std::string before;
  for (const Document& example : examples.first(static_cast<size_t>(shots))) before += as_example(example);
  for (Document& document : documents)
    for (Request& request : document.requests) request.context.insert(0, before);
}

void choose_documents(const Task& task, int64_t most, std::vector<Document>& documents) {
  constexpr uint32_t kOrder = 1337, kExamples = 1234;
  if (task.drawn_shots) PythonRandom(kOrder).shuffle(std::span(documents));
  if (most > 0 && std::ssize(documents) > most) documents.resize(static_cast<size_t>(most));
  if (!task.drawn_shots) return;
  const auto shots = static_cast<size_t>(*task.drawn_shots);
  if (documents.size() <= shots)
    throw base::UserError("tasks", "the task {} has {} documents, from which no {} examples can be drawn", task.name,
                          documents.size(), shots);
  std::vector<std::string> examples;
  for (const Document& document : documents) examples.push_back(as_example(document));
  for (size_t i = 0; i < documents.size(); ++i) {
    std::string before;
    for (const size_t drawn : PythonRandom(kExamples + static_cast<uint32_t>(i)).sample(documents.size() - 1, shots))
      before += examples[drawn < i ? drawn : drawn + 1];  // of all others
    for (Request& request : documents[i].requests) request.context.insert(0, before);
  }
}

int64_t num_words(std::string_view text) {
  int64_t words = 1;
  bool space = false;
  for (text::Character c; !text.empty(); text.remove_prefix(static_cast<size_t>(std::max(c.size, 1)))) {
    c = text::read_character(text);
    const bool now = c.size > 0 && without_leading_space(text).data() != text.data();
    words += now && !space ? 1 : 0;
    space = now;
  }
  return words;
}

int64_t num_characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::vector<Document> read_documents(const Task& task, const fs::path& path) {
  const fs::path file = file_of(task, path);
  const std::vector<Json> records = records_of(read_text(file), file.string());
  const Form& form = form_of(task, records[0]);
  std::string label_text;
  std::vector<std::string_view> labels(records.size());
  if (!form.label.lines.empty()) {
    const fs::path label_file = beside(file, form.label.lines);
    label_text = read_text(label_file);
    labels = lines_of(label_text);
    if (labels.size() != records.size())
      throw base::UserError("tasks", "\"{}\" has {} labels and \"{}\" {} documents", label_file.string(), labels.size(),
                            file.string(), records.size());
  }
  std::vector<Document> documents;
  for (size_t i = 0; i < records.size(); ++i) {
    if (!records[i].is_object()) records[i].refuse("an object");
    documents.push_back(read_document(task.kind, form, records[i], labels[i]));
  }
  return documents;
}

}  // namespace kintsugi::tasks

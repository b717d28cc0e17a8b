// The documents of a task, read from files in their published format.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/tasks/task.h"

namespace kintsugi::tasks {

// What the model is asked to predict: `continuation` after `context`.
struct Request {
  std::string context, continuation;
  int64_t characters = 0;  // of the choice, without its prefix
};

struct Document {
  std::string id;  // "" if the data has none
  std::vector<Request> requests;
  size_t gold = 0;               // the correct request
  int64_t words = 0, bytes = 0;  // of a text
};

// `path` is a file, or a folder containing a file that the task names. A file is JSON lines (one object per line) or a
// JSON list of objects, optionally compressed by gzip or zstd. Throws UserError, naming file, line and field, for data
// in another format, and for a file without documents.
std::vector<Document> read_documents(const Task& task, const std::filesystem::path& path);

// Prepends the first `shots` examples, each with its correct continuation, to every context, as the harness does with
// its sampler first_n. Throws UserError if there are fewer, or if the task has no contexts.
void add_shots(const Task& task, std::span<const Document> examples, int64_t shots, std::vector<Document>& documents);

// Keeps the first `most` documents; 0: all. Those of a task with drawn examples are shuffled before, and each context
// gets `drawn_shots` other documents with their correct continuations, as in nanochat's evaluation of CORE. Throws
// UserError if there are too few documents.
void choose_documents(const Task& task, int64_t most, std::vector<Document>& documents);

// Counts words as Python's `re.split(r"\s+", text)` does.
int64_t num_words(std::string_view text);
// Counts characters of valid UTF-8.
int64_t num_characters(std::string_view text);

}  // namespace kintsugi::tasks

// The documents of a task, read from files in the form in which they are published.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/tasks/task.h"

namespace kintsugi::tasks {

// What a model is asked to predict: `continuation` after `context`.
struct Request {
  std::string context, continuation;
  int64_t characters = 0;  // of the choice, without what stands before it
};

struct Document {
  std::string id;  // "" if the data has none
  std::vector<Request> requests;
  size_t gold = 0;               // the request that is right
  int64_t words = 0, bytes = 0;  // of a text
};

// `path` is a file, or a folder that holds one that the task names. A file is JSON lines (an object on each line) or
// one JSON list of objects, compressed by gzip or zstd or not. UserError that names file, line and field for data in
// another form, and for a file without documents.
std::vector<Document> read_documents(const Task& task, const std::filesystem::path& path);

// Puts the first `shots` examples, each with its right continuation, before every context, as the harness does with its
// sampler first_n. UserError if there are fewer, or if the task has no contexts.
void add_shots(const Task& task, std::span<const Document> examples, int64_t shots, std::vector<Document>& documents);

// Words of a text as `re.split(r"\s+", text)` of Python counts them.
int64_t num_words(std::string_view text);
// Characters of valid UTF-8.
int64_t num_characters(std::string_view text);

}  // namespace kintsugi::tasks

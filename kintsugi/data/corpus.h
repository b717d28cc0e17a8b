// Which files a corpus is made of.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/data/input_file.h"

namespace kintsugi::data {

struct CorpusOptions {
  std::vector<std::string> inputs;  // files, folders, patterns, pipes, and "-", the standard input
  std::string field;                // not empty: the files are JSONL, and this field of each line is a document's text
  std::filesystem::path exclude;    // a folder whose content does not belong to the corpus (the output)
  const std::atomic<bool>* stop = nullptr;  // ends the reading of a pipe with a UserError
  std::set<std::string> exclude_files =
      {};  // canonical paths of files that belong to another corpus (the validation text)
};

struct Corpus {
  std::vector<CorpusFile> files;
  uint64_t bytes = 0;               // of text
  uint64_t bytes_on_disk = 0;       // fewer where files are compressed
  uint64_t skipped_binary = 0;      // files in folders that are no text: a NUL in the first 8 KiB, or a known format
  std::string no_text;              // why a file that was named is none: "\"a.zip\" is not text: it is a zip archive"
  uint64_t skipped_hidden = 0;      // files and folders in folders whose name begins with a dot
  uint64_t skipped_duplicates = 0;  // files that an earlier input had named already
  uint64_t skipped_excluded = 0;    // exclude_files
  uint64_t skipped_other = 0;       // in folders: sockets, pipes, links to folders; with a field, what is not *.jsonl
};

// The inputs in the order given; the files of a folder (searched recursively) or a pattern are sorted by the bytes of
// their paths. UserError if an input matches nothing, or cannot be read.
Corpus list_corpus(const CorpusOptions& options);

// UserError if a file that was named is no text.
void require_texts(const Corpus& corpus);

std::set<std::string> canonical_paths(const Corpus& corpus);

// "*.jsonl" and "*.ndjson", and both compressed: "*.jsonl.gz"
bool is_jsonl_name(const std::filesystem::path& path);

}  // namespace kintsugi::data

// The files that make up a corpus.
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
  std::vector<std::string> inputs;  // files, folders, patterns, pipes, and "-" for standard input
  std::string field = {};  // if not empty, files are JSONL, and this field of each line is the text of a document
  std::filesystem::path exclude = {};        // a folder to leave out of the corpus (the output)
  const std::atomic<bool>* stop = nullptr;   // aborts reading from a pipe with a UserError
  std::set<std::string> exclude_files = {};  // canonical paths of files of another corpus (the validation text)
};

struct Corpus {
  std::vector<CorpusFile> files;
  uint64_t bytes = 0;               // of text
  uint64_t bytes_on_disk = 0;       // smaller where files are compressed
  uint64_t skipped_binary = 0;      // files in folders that are not text: a NUL in the first 8 KiB, or a known format
  std::string no_text;              // why a named file is not text: "\"a.zip\" is not text: it is a zip archive"
  uint64_t skipped_hidden = 0;      // files and folders within folders whose name begins with a dot
  uint64_t skipped_duplicates = 0;  // files named by an earlier input
  uint64_t skipped_excluded = 0;    // exclude_files
  uint64_t skipped_other = 0;  // in folders: sockets, pipes, links to folders; with a field, files other than *.jsonl
};

// Lists inputs in the order given; the files of a folder (searched recursively) or a pattern are sorted bytewise by
// path. Throws UserError if an input matches nothing or cannot be read.
Corpus list_corpus(const CorpusOptions& options);

// Throws UserError if a named file is not text.
void require_texts(const Corpus& corpus);

std::set<std::string> canonical_paths(const Corpus& corpus);

// "*.jsonl" and "*.ndjson", also compressed: "*.jsonl.gz"
bool is_jsonl_name(const std::filesystem::path& path);

}  // namespace kintsugi::data

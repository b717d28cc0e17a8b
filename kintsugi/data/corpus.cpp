#include "kintsugi/data/corpus.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>

#include "kintsugi/base/error.h"

namespace kintsugi::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLookAt = 8 << 10;
constexpr size_t kMeasured = 1 << 20;  // bytes of a compressed text to measure

// What the beginning of a file reveals.
struct Look {
  Compression compression = Compression::none;
  std::string binary = {};  // why it is not text; empty: it is text
  uint64_t bytes = 0;       // of its text
};

Look look_at(const CorpusFile& file, uint64_t bytes_on_disk) {
  std::string head;
  InputFile(file).read(kLookAt, head);
  Look look = {.compression = compression_of(head), .bytes = bytes_on_disk};
  if (look.compression != Compression::none) {
    const auto text = open_text(file.spooled ? file.spooled->path() : file.path, look.compression, file.path.string());
    head.resize(kMeasured);
    head.resize(text->read(head));
    const double share =
        static_cast<double>(bytes_on_disk) / static_cast<double>(std::max<uint64_t>(1, text->consumed()));
    look.bytes = head.size() < kMeasured
                     ? head.size()
                     : static_cast<uint64_t>(static_cast<double>(head.size()) * std::max(1.0, share));
    head.resize(std::min(head.size(), kLookAt));
  }
  const std::string_view format = known_format(head);
  const std::string_view of_what = look.compression == Compression::none ? "it" : "what it holds";
  if (!format.empty()) {
    look.binary = fmt::format("{} is {}", of_what, format);
  } else if (const size_t at = head.find('\0'); at != std::string::npos) {
    look.binary = fmt::format("{} has a NUL at byte {}", of_what, at);
  }
  return look;
}

[[noreturn]] void fail(const fs::path& path, const std::error_code& error) {
  throw base::UserError("prepare", "cannot read \"{}\": {}", path.string(), error.message());
}

// Builds a corpus input by input.
class Listing {
 public:
  explicit Listing(const CorpusOptions& options) : options_(options) {
    std::error_code ignored;
    if (!options_.exclude.empty()) exclude_ = fs::weakly_canonical(options_.exclude, ignored);
  }

  void add_input(const std::string& input) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    if (input == kStandardInput || fs::is_fifo(status)) return add_pipe(input);
    if (fs::is_directory(status)) return add_folder(input);
    if (fs::is_regular_file(status)) return add_file(input);
    if (fs::exists(status)) {
      throw base::UserError("prepare", "\"{}\" is neither a file nor a folder", input);
    }
    add_pattern(input);
  }

  Corpus take() { return std::move(corpus_); }

 private:
  void add_pattern(const std::string& pattern) {
    glob_t found = {};
    const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
    std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
    ::globfree(&found);
    if (paths.empty()) {
      const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos;
      throw base::UserError("prepare", "{} \"{}\"", is_pattern ? "no file matches" : "there is no file or folder",
                            pattern);
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) fs::is_directory(path) ? add_folder(path) : add_file(path);
  }

  // Rejects a non-text file if it is `named`; skips it in a folder.
  void add_file(const fs::path& path, bool named = true) {
    const bool named_jsonl = is_jsonl_name(path);
    if (named_jsonl && options_.field.empty()) {
      throw base::UserError("prepare",
                            "\"{}\" is JSONL; --field says which field of its lines is the text, for example "
                            "--field text",
                            path.string());
    }
    std::error_code error;
    const fs::path canonical = fs::canonical(path, error);
    if (error) fail(path, error);
    if (options_.exclude_files.contains(canonical.string())) {
      ++corpus_.skipped_excluded;
      return;
    }
    if (!seen_.insert(canonical.string()).second) {
      ++corpus_.skipped_duplicates;
      return;
    }
    const uint64_t bytes = fs::file_size(path, error);
    if (error) fail(path, error);
    add({.path = path}, bytes, named);
  }

  void add_pipe(const std::string& input) {
    CorpusFile file = {.path = input == kStandardInput ? "standard input" : input,
                       .spooled = std::make_shared<SpooledInput>(input, options_.exclude, options_.stop)};
    const uint64_t bytes = file.spooled->bytes();
    add(std::move(file), bytes, true);
  }

  void add(CorpusFile file, uint64_t bytes, bool named) {
    const Look look = look_at(file, bytes);
    if (!look.binary.empty() && named && corpus_.no_text.empty())
      corpus_.no_text = fmt::format("\"{}\" is not text: {}", file.path.string(), look.binary);
    if (!look.binary.empty() && !named) {
      ++corpus_.skipped_binary;
      return;
    }
    file.bytes = look.bytes;
    file.jsonl = !options_.field.empty();
    file.compression = look.compression;
    corpus_.files.push_back(std::move(file));
    corpus_.bytes += look.bytes;
    corpus_.bytes_on_disk += bytes;
  }

  void add_folder(const fs::path& folder) {
    std::vector<fs::path> paths;
    collect(folder, paths);
    std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
    for (const fs::path& path : paths) add_file(path, false);
  }

  void collect(const fs::path& folder, std::vector<fs::path>& paths) {
    std::error_code error;
    if (!exclude_.empty() && fs::weakly_canonical(folder, error) == exclude_) return;
    fs::directory_iterator entries(folder, error);
    if (error) fail(folder, error);
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      const fs::directory_entry& entry = *entries;
      if (entry.path().filename().native().starts_with('.')) {
        ++corpus_.skipped_hidden;
      } else if (entry.is_directory(error) && !entry.is_symlink(error)) {
        collect(entry.path(), paths);
      } else if (entry.is_regular_file(error) && (options_.field.empty() || is_jsonl_name(entry.path()))) {
        paths.push_back(entry.path());
      } else {
        ++corpus_.skipped_other;
      }
    }
    if (error) fail(folder, error);
  }

  const CorpusOptions& options_;
  fs::path exclude_;
  Corpus corpus_;
  std::set<std::string> seen_;
};

}  // namespace

bool is_jsonl_name(const fs::path& path) {
  const fs::path outer = path.extension();
  const fs::path extension = outer == ".gz" || outer == ".zst" ? path.stem().extension() : outer;
  return extension == ".jsonl" || extension == ".ndjson";
}

void require_texts(const Corpus& corpus) {
  if (corpus.no_text.empty()) return;
  throw base::UserError("prepare", "{}; name text files, compressed by gzip or zstd or not", corpus.no_text);
}

std::set<std::string> canonical_paths(const Corpus& corpus) {
  std::set<std::string> paths;
  for (const CorpusFile& file : corpus.files)
    if (!file.spooled) paths.insert(fs::canonical(file.path).string());
  return paths;
}

Corpus list_corpus(const CorpusOptions& options) {
  Listing listing(options);
  for (const std::string& input : options.inputs) listing.add_input(input);
  Corpus corpus = listing.take();
  if (corpus.files.empty()) {
    throw base::UserError("prepare",
                          "no file to read in {} input{}: {} binary, {} hidden, {} other files were skipped{}",
                          options.inputs.size(), options.inputs.size() == 1 ? "" : "s", corpus.skipped_binary,
                          corpus.skipped_hidden, corpus.skipped_other,
                          options.field.empty() ? "" : "; with --field, folders are searched for *.jsonl and *.ndjson");
  }
  return corpus;
}

}  // namespace kintsugi::data

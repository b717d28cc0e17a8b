// A file of text as a stream of bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace kintsugi::data {

// A file of a corpus. A text in memory can replace the file.
struct CorpusFile {
  std::filesystem::path path;
  uint64_t bytes = 0;  // when it was listed
  bool jsonl = false;
  std::shared_ptr<const std::string> content = nullptr;  // if set, this is read, and `path` only names it
};

class InputFile {
 public:
  // Reads from byte `from` on. UserError if the file cannot be opened.
  explicit InputFile(const CorpusFile& file, uint64_t from = 0);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Appends up to `count` bytes to `text`, fewer only at the end of the file. Returns how many.
  size_t read(size_t count, std::string& text);

 private:
  std::filesystem::path path_;
  std::shared_ptr<const std::string> content_;
  int descriptor_ = -1;
  uint64_t at_;  // in content_
};

}  // namespace kintsugi::data

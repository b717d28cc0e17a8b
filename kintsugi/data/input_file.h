// A text file as a byte stream.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "kintsugi/data/spooled_input.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::data {

// A file of a corpus. Text in memory, or a copy of single-pass input, can replace the file.
struct CorpusFile {
  std::filesystem::path path;  // names it in messages
  uint64_t bytes = 0;          // size of its text when listed; an estimate for a large compressed file
  bool jsonl = false;
  Compression compression = Compression::none;
  std::shared_ptr<const std::string> content = nullptr;   // if set, read this instead
  std::shared_ptr<const SpooledInput> spooled = nullptr;  // if set, read this instead
};

class InputFile {
 public:
  // Starts at byte `from` of the text. Throws UserError if the file cannot be opened.
  explicit InputFile(const CorpusFile& file, uint64_t from = 0);

  // Appends up to `count` bytes to `text`, fewer only at the end of the file. Returns the number of bytes.
  size_t read(size_t count, std::string& text);

 private:
  std::shared_ptr<const std::string> content_;
  std::unique_ptr<TextStream> stream_;
  uint64_t at_ = 0;  // in content_
};

}  // namespace kintsugi::data

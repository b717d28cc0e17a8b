// A file of text as a stream of bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "kintsugi/data/spooled_input.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::data {

// A file of a corpus. A text in memory, or a copy of what can be read once, can replace the file.
struct CorpusFile {
  std::filesystem::path path;  // names it in messages
  uint64_t bytes = 0;          // of its text when it was listed; of a large compressed file, an estimate
  bool jsonl = false;
  Compression compression = Compression::none;
  std::shared_ptr<const std::string> content = nullptr;   // if set, this is read
  std::shared_ptr<const SpooledInput> spooled = nullptr;  // if set, this is read
};

class InputFile {
 public:
  // Reads from byte `from` of the text on. UserError if the file cannot be opened.
  explicit InputFile(const CorpusFile& file, uint64_t from = 0);

  // Appends up to `count` bytes to `text`, fewer only at the end of the file. Returns how many.
  size_t read(size_t count, std::string& text);

 private:
  std::shared_ptr<const std::string> content_;
  std::unique_ptr<TextStream> stream_;
  uint64_t at_ = 0;  // in content_
};

}  // namespace kintsugi::data

// For the tests of this folder: a temporary folder and small token files in it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/data/token_writer.h"

namespace kintsugi::data {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kintsugi_data_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw base::InternalError("test", "no temporary folder");
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string text(const std::string& name) const { return (path_ / name).string(); }

  void write(const std::string& name, std::string_view content) const {
    base::make_folders((path_ / name).parent_path());
    base::write_file_atomically(path_ / name, content);
  }

 private:
  std::filesystem::path path_;
};

inline void write_tokens(const std::filesystem::path& prefix, const std::vector<std::vector<int32_t>>& documents,
                         TokenWriterOptions options = {.vocab_size = 1000, .tokenizer = "t"}) {
  TokenWriter writer(prefix, std::move(options));
  for (const std::vector<int32_t>& document : documents) {
    writer.append(document);
    writer.end_document();
  }
  writer.finish();
  writer.publish();
}

inline std::vector<int32_t> all_tokens(const TokenFile& file) {
  std::vector<int32_t> tokens(file.num_tokens());
  file.read(0, tokens);
  return tokens;
}

// The message of the UserError that f throws, or "no error".
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace kintsugi::data

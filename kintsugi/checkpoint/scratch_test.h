// Shared by the tests of this folder: a temporary folder, a small checkpoint, and error texts.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/writer.h"

namespace kintsugi::checkpoint {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kintsugi_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw base::InternalError("test", "no temporary folder {}", name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void put(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

// The text of the UserError that f throws, without the scratch folder's name; "" if none.
template <typename F>
std::string error_of(F&& f, const std::filesystem::path& scratch = {}) {
  try {
    f();
  } catch (const base::UserError& error) {
    std::string text = error.what();
    const std::string prefix = scratch.string() + "/";
    for (size_t at; !scratch.empty() && (at = text.find(prefix)) != text.npos;) text.erase(at, prefix.size());
    return text;
  }
  return "";
}

// A checkpoint of one tensor in two pieces, with all optional files.
inline std::filesystem::path save_small(const std::filesystem::path& run, int64_t step) {
  const std::vector<uint8_t> data = {1, 2, 3, 4, 5, 6};
  CheckpointWriter writer(run, step);
  const auto bytes = std::as_bytes(std::span(data));
  const tensor::Type type{{{"a", 3}, {"b", 4}}, tensor::DType::u8};
  writer.add({"w", type, Kind::weight, {}, Range{0, 6}}, bytes);
  writer.add({"w", type, Kind::weight, {}, Range{6, 12}}, bytes);
  writer.write();
  return writer.finish({"{\"cursor\":1}", "[model]\nlayers = 2\n", "{\"model\":{}}"});
}

inline bool is_one_line(std::string_view text) {
  return text.find_first_of("\n\r") == text.npos;
}

}  // namespace kintsugi::checkpoint

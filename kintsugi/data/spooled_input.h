// Input that can be read once, such as a pipe, kept in a file that has no name.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

namespace kintsugi::data {

constexpr const char* kStandardInput = "-";

class SpooledInput {
 public:
  // Reads `source` to its end ("-": the standard input) into a file without a name in the folder that will hold
  // `output`, or in its nearest parent that exists; the system removes it with the process. UserError if it cannot be
  // read or kept, or when `stop` is set.
  SpooledInput(const std::filesystem::path& source, const std::filesystem::path& output, const std::atomic<bool>* stop);
  ~SpooledInput();
  SpooledInput(const SpooledInput&) = delete;
  SpooledInput& operator=(const SpooledInput&) = delete;

  const std::filesystem::path& path() const { return path_; }  // opens the copy from its beginning
  uint64_t bytes() const { return bytes_; }

 private:
  void copy(int from, const std::string& name, const std::atomic<bool>* stop);

  int descriptor_ = -1;
  std::filesystem::path path_;
  uint64_t bytes_ = 0;
};

}  // namespace kintsugi::data

// Single-pass input, such as a pipe, spooled to an anonymous file.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

namespace kintsugi::data {

constexpr const char* kStandardInput = "-";

class SpooledInput {
 public:
  // Reads `source` to its end ("-": standard input) into an anonymous file in the future folder of `output`, or its
  // nearest existing parent; the system removes it with the process. Throws UserError if it cannot be read or stored,
  // or when `stop` is set.
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

// NumPy's array format, version 1.0, little-endian as this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::app {

// fp32 [rows columns].
std::string npy_file(std::span<const float> values, size_t rows, size_t columns);

// Writes a file in pieces, under another name until it is complete.
class NpyWriter {
 public:
  // `type` in NumPy's notation: "<f4". Throws UserError if the file cannot be created.
  NpyWriter(const std::filesystem::path& path, std::string_view type, std::span<const int64_t> shape);
  ~NpyWriter();
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;

  void append(std::span<const std::byte> elements);
  // Throws UserError if anything was not written.
  void finish();

 private:
  std::filesystem::path path_, target_, part_;
  std::ofstream file_;
};

}  // namespace kintsugi::app

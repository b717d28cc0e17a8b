#include "app/npy_file.h"

#include <fmt/format.h>

#include <bit>

namespace kintsugi::app {

std::string npy_file(std::span<const float> values, size_t rows, size_t columns) {
  static_assert(std::endian::native == std::endian::little);
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  constexpr size_t kBefore = 10;
  header.append(64 - (kBefore + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  return file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

}  // namespace kintsugi::app

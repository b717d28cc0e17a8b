// Small image files for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::images {

// Byte i of image n.
inline uint8_t test_pixel(int64_t n, int64_t i) {
  return static_cast<uint8_t>(29 * n + 7 * i + 5);
}

inline std::string test_pixels(int64_t n, int64_t bytes) {
  std::string text;
  for (int64_t i = 0; i < bytes; ++i) text += static_cast<char>(test_pixel(n, i));
  return text;
}

// Records of CIFAR-10 (one label byte) or CIFAR-100 (two, the first of which is 3).
inline std::string cifar_file(const std::vector<int>& labels, int label_bytes = 1) {
  std::string file;
  for (size_t n = 0; n < labels.size(); ++n) {
    if (label_bytes == 2) file += '\3';
    file += static_cast<char>(labels[n]);
    file += test_pixels(static_cast<int64_t>(n), 3072);
  }
  return file;
}

inline std::string idx_file(const std::vector<uint32_t>& shape, std::string_view elements, char type = 8) {
  std::string file = {0, 0, type, static_cast<char>(shape.size())};
  for (const uint32_t size : shape)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  return file.append(elements);
}

// As written by NumPy, version 1.
inline std::string npy_file(std::string_view type, std::string_view shape, std::string_view elements,
                            std::string_view order = "False") {
  std::string header = "{'descr': '" + std::string(type) + "', 'fortran_order': " + std::string(order) +
                       ", 'shape': " + std::string(shape) + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = "\x93NUMPY";
  file += {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return file + header + std::string(elements);
}

}  // namespace kintsugi::images

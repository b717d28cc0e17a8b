// NumPy's array format.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kintsugi::app {

// Version 1.0: fp32 [rows columns], little-endian as this machine.
std::string npy_file(std::span<const float> values, size_t rows, size_t columns);

}  // namespace kintsugi::app

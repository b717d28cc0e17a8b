// The fixed part of an index of a token file (the grammar is in token_file.h).
#pragma once

#include <cstddef>
#include <string_view>

namespace kintsugi::data {

inline constexpr std::string_view kIndexMagic{"MMIDIDX\0\0", 9};
inline constexpr size_t kIndexHeaderBytes = 34;

}  // namespace kintsugi::data

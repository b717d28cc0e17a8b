// The fixed part of a token file's index (grammar in token_file.h).
#pragma once

#include <cstddef>
#include <string_view>

namespace kintsugi::data {

inline constexpr std::string_view kIndexMagic{"MMIDIDX\0\0", 9};
inline constexpr size_t kIndexHeaderBytes = 34;

}  // namespace kintsugi::data

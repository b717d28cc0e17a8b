// Memory sizes in user notation.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kintsugi::config {

// The bytes in "16 GiB", "900 MB", "1.5 TiB": a positive number, an optional space, and exactly B, kB, MB, GB, TB, KiB,
// MiB, GiB or TiB. Nothing for any other text, and above 2^62 bytes.
std::optional<int64_t> memory_size(std::string_view text);

}  // namespace kintsugi::config

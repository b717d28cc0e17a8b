// Sizes of memory as a user writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kintsugi::config {

// The bytes of "16 GiB", "900 MB", "1.5 TiB": a positive number, an optional space, and B, kB, MB, GB, TB, KiB, MiB,
// GiB or TiB, in that spelling. Nothing for any other text, and for more than 2^62 bytes.
std::optional<int64_t> memory_size(std::string_view text);

}  // namespace kintsugi::config

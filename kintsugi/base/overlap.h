// Whether two ranges of bytes overlap.
#pragma once

#include <cstddef>
#include <span>

namespace kintsugi::base {

inline bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace kintsugi::base

#include "kintsugi/text/joinable.h"

#include <bit>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

uint64_t key_of(char32_t left, char32_t right) {
  return static_cast<uint64_t>(left) << 32 | right | uint64_t{1} << 63;  // never 0
}

}  // namespace

Joinable::Joinable(size_t num_merges) : keys_(std::bit_ceil(num_merges * 2 + 2)) {}

// The slot of the key, or the free slot for it.
size_t Joinable::slot_of(uint64_t key) const {
  const size_t mask = keys_.size() - 1;
  size_t slot = (key * 0x9E3779B97F4A7C15ULL >> 29) & mask;
  while (keys_[slot] != 0 && keys_[slot] != key) slot = (slot + 1) & mask;
  return slot;
}

void Joinable::add(std::string_view left, std::string_view right) {
  const char32_t a = read_last_character(left).code, b = read_character(right).code;
  if (a < 128 && b < 128) {
    ascii_[a][b] = true;
  } else {
    keys_[slot_of(key_of(a, b))] = key_of(a, b);
  }
}

bool Joinable::find_any(char32_t left, char32_t right) const {
  return keys_[slot_of(key_of(left, right))] != 0;
}

}  // namespace kintsugi::text

// Short words as integers, which compare and hash in a few instructions.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace kintsugi::text {

constexpr size_t kMostPacked = 24;

template <typename Number>
uint64_t read_number(const char* bytes) {
  Number number = 0;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

// Packs 1 to 8 bytes; words of equal size differ iff their numbers do. Two overlapping loads cover all bytes.
inline uint64_t pack_few(std::string_view word) {
  const char* begin = word.data();
  const char* end = begin + word.size();
  if (word.size() >= 4) return read_number<uint32_t>(begin) << 32 | read_number<uint32_t>(end - 4);
  if (word.size() >= 2) return read_number<uint16_t>(begin) << 32 | read_number<uint16_t>(end - 2);
  return static_cast<uint8_t>(*begin);
}

using PackedWord = std::array<uint64_t, 3>;

// The same for 1 to kMostPacked bytes.
inline PackedWord pack(std::string_view word) {
  if (word.size() <= 8) return {pack_few(word), 0, 0};
  const char* begin = word.data();
  const uint64_t last = read_number<uint64_t>(begin + word.size() - 8);
  if (word.size() <= 16) return {read_number<uint64_t>(begin), last, 0};
  return {read_number<uint64_t>(begin), last, read_number<uint64_t>(begin + 8)};
}

}  // namespace kintsugi::text

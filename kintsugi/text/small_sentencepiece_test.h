// For tests: SentencePiece models small enough to work out by hand.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/text/byte_tokens.h"

namespace kintsugi::text {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string number_field(int number, uint64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(value);
}
inline std::string bytes_field(int number, std::string_view bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
inline std::string little_endian(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}
inline std::string piece_field(std::string_view text, float score, int type) {
  const std::string bits = little_endian(std::bit_cast<uint32_t>(score));
  return bytes_field(1,
                     bytes_field(1, text) + varint(2 << 3 | 5) + bits + number_field(3, static_cast<uint64_t>(type)));
}

// A charsmap that replaces A by B.
inline std::string small_charsmap() {
  std::vector<uint32_t> units(256);
  units[0] = 1 << 10;                          // children at 1 ^ label
  units[1 ^ 'A'] = 'A' | 1 << 8 | 0x80 << 10;  // its value at its place ^ 0x80
  units[(1 ^ 'A') ^ 0x80] = 1u << 31;          // the text at 0
  std::string map = little_endian(256 * 4);
  for (const uint32_t unit : units) map += little_endian(unit);
  return map + std::string("B\0", 2);
}

// The ids: 0 <unk>, 1 <s>, 2 </s>, 3 <sep>, user-defined, with `bytes` 256 byte pieces, then ▁ l o w e r B lo low ▁low
// er. `model` 1 is Unigram, 2 BPE, 3 words, 4 characters; without `bytes` there is a charsmap.
inline std::string small_sentencepiece(int model, bool bytes) {
  std::string file = piece_field("<unk>", 0, 2) + piece_field("<s>", 0, 3) + piece_field("</s>", 0, 3);
  file += piece_field("<sep>", 0, 4);
  for (int byte = 0; bytes && byte < 256; ++byte) file += piece_field(byte_token(static_cast<uint8_t>(byte)), 0, 6);
  float score = -8;
  for (const char* piece : {"\u2581", "l", "o", "w", "e", "r", "B"}) file += piece_field(piece, score -= 1, 1);
  score = 0;
  for (const char* piece : {"lo", "low", "\u2581low", "er"}) file += piece_field(piece, score -= 1, 1);
  file += bytes_field(2, number_field(3, static_cast<uint64_t>(model)) + number_field(35, bytes));
  return file + bytes_field(3, bytes ? number_field(4, 0) : bytes_field(2, small_charsmap()));
}

}  // namespace kintsugi::text

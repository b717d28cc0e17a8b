#include "kintsugi/base/crc32c.h"

#include <array>

namespace kintsugi::base {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> kOfByte = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? kReversedPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t rest = ~uint32_t{0};
  for (const char c : bytes) rest = rest >> 8 ^ kOfByte[(rest ^ static_cast<unsigned char>(c)) & 0xff];
  return ~rest;
}

}  // namespace kintsugi::base

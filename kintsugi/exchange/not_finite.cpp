#include "kintsugi/exchange/not_finite.h"

#include <cstring>
#include <limits>

namespace kintsugi::exchange {
namespace {

// Elements whose exponent bits are all set. They are rare, so test blocks of 8-byte words at once: a word of `rest` has
// a zero lane for each.
template <typename Bits>
int64_t count_special(std::span<const std::byte> bytes, Bits exponent) {
  constexpr uint64_t kOnes = ~uint64_t{0} / std::numeric_limits<Bits>::max();  // 1 in each lane
  constexpr uint64_t kHigh = kOnes << (8 * sizeof(Bits) - 1);
  constexpr size_t kWords = 64, kBlock = kWords * sizeof(uint64_t);
  const uint64_t exponents = kOnes * exponent;
  int64_t count = 0;
  size_t at = 0;
  const auto count_each = [&](size_t end) {
    for (; at < end; at += sizeof(Bits)) {
      Bits bits;
      std::memcpy(&bits, bytes.data() + at, sizeof bits);
      count += (bits & exponent) == exponent;
    }
  };
  while (at + kBlock <= bytes.size()) {
    uint64_t lanes = 0;
    for (size_t i = 0; i < kWords; ++i) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + at + i * sizeof word, sizeof word);
      const uint64_t rest = (word & exponents) ^ exponents;
      lanes |= (rest - kOnes) & ~rest;
    }
    if ((lanes & kHigh) != 0)
      count_each(at + kBlock);
    else
      at += kBlock;
  }
  count_each(bytes.size());
  return count;
}

}  // namespace

int64_t count_not_finite(std::span<const std::byte> bytes, tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::f64:
      return count_special<uint64_t>(bytes, 0x7ff0000000000000);
    case tensor::DType::f32:
      return count_special<uint32_t>(bytes, 0x7f800000);
    case tensor::DType::bf16:
      return count_special<uint16_t>(bytes, 0x7f80);
    case tensor::DType::f16:
      return count_special<uint16_t>(bytes, 0x7c00);
    default:
      tensor::not_floating(dtype);
  }
}

}  // namespace kintsugi::exchange

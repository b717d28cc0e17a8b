#include "kintsugi/tasks/python_random.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "kintsugi/base/error.h"

namespace kintsugi::tasks {

PythonRandom::PythonRandom(uint32_t seed) {
  const auto mixed = [&](size_t i) { return words_[i - 1] ^ (words_[i - 1] >> 30); };
  const auto wrap = [&](size_t& i) {
    if (++i < kWords) return;
    words_[0] = words_[kWords - 1];
    i = 1;
  };
  words_[0] = 19650218;
  for (size_t i = 1; i < kWords; ++i) words_[i] = 1812433253U * mixed(i) + static_cast<uint32_t>(i);
  size_t i = 1;
  for (size_t k = 0; k < kWords; ++k, wrap(i)) words_[i] = (words_[i] ^ (mixed(i) * 1664525U)) + seed;
  for (size_t k = 1; k < kWords; ++k, wrap(i))
    words_[i] = (words_[i] ^ (mixed(i) * 1566083941U)) - static_cast<uint32_t>(i);
  words_[0] = 0x80000000U;
}

uint32_t PythonRandom::next() {
  if (used_ == kWords) {
    for (size_t i = 0; i < kWords; ++i) {
      const uint32_t joined = (words_[i] & 0x80000000U) | (words_[(i + 1) % kWords] & 0x7FFFFFFFU);
      words_[i] = words_[(i + 397) % kWords] ^ (joined >> 1) ^ ((joined & 1) != 0 ? 0x9908B0DFU : 0);
    }
    used_ = 0;
  }
  uint32_t y = words_[used_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9D2C5680U;
  y ^= (y << 15) & 0xEFC60000U;
  return y ^ (y >> 18);
}

size_t PythonRandom::below(size_t count) {
  const auto bits = static_cast<int>(std::bit_width(count));
  base::require(count > 0 && bits <= 32, "tasks", "a random number below {}", count);
  size_t drawn = count;
  while (drawn >= count) drawn = next() >> (32 - bits);
  return drawn;
}

std::vector<size_t> PythonRandom::sample(size_t count, size_t size) {
  base::require(size <= count, "tasks", "{} of {} drawn", size, count);
  size_t small = 21;  // up to this count, Python removes from a list; above, it remembers what it has drawn
  if (size > 5) {
    size_t power = 1;
    while (power < 3 * size) power *= 4;
    small += power;
  }
  std::vector<size_t> result;
  if (count > small) {
    while (result.size() < size)
      if (const size_t drawn = below(count); std::ranges::find(result, drawn) == result.end()) result.push_back(drawn);
    return result;
  }
  std::vector<size_t> left(count);
  std::iota(left.begin(), left.end(), size_t{0});
  for (; result.size() < size; left.pop_back()) {
    size_t& drawn = left[below(left.size())];
    result.push_back(drawn);
    drawn = left.back();
  }
  return result;
}

}  // namespace kintsugi::tasks

// The random numbers of Python's `random.Random(seed)`, for evaluations whose examples it draws.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kintsugi::tasks {

// MT19937 (Matsumoto and Nishimura 1998), seeded by an array of one word.
class PythonRandom {
 public:
  explicit PythonRandom(uint32_t seed);

  // A number below `count`, which is from 1 to 2^32 - 1.
  size_t below(size_t count);

  // random.shuffle
  template <typename T>
  void shuffle(std::span<T> list) {
    for (size_t i = list.size(); i-- > 1;) std::swap(list[i], list[below(i + 1)]);
  }

  // random.sample(range(count), size), which has at most `count` elements
  std::vector<size_t> sample(size_t count, size_t size);

 private:
  static constexpr size_t kWords = 624;
  uint32_t next();

  std::array<uint32_t, kWords> words_ = {};
  size_t used_ = kWords;
};

}  // namespace kintsugi::tasks

// Which of the samples of a file is the n-th of a run: each once in an epoch, in an order of its own; or, for
// evaluation, each once in the order of the file.
#pragma once

#include <cstdint>

#include "kintsugi/data/hash.h"
#include "kintsugi/samples/permutation.h"

namespace kintsugi::samples {

struct SampleOrder {
  bool shuffled = false;
  uint64_t seed = 0;

  // Sample n of `count`; not below `count` where the samples have ended.
  uint64_t operator()(uint64_t n, uint64_t count) const {
    if (!shuffled) return n;
    return Permutation(count, data::mix(seed, n / count))(n % count);
  }
};

}  // namespace kintsugi::samples

// Maps the n-th sample of a run to a sample of a file: each once per epoch, in a different order each time; or, for
// evaluation, each once in file order.
#pragma once

#include <cstdint>

#include "kintsugi/data/hash.h"
#include "kintsugi/samples/permutation.h"

namespace kintsugi::samples {

struct SampleOrder {
  bool shuffled = false;
  uint64_t seed = 0;

  // Index of sample n among `count`; >= `count` if the samples have ended.
  uint64_t operator()(uint64_t n, uint64_t count) const {
    if (!shuffled) return n;
    return Permutation(count, data::mix(seed, n / count))(n % count);
  }
};

}  // namespace kintsugi::samples

#include "kintsugi/evaluate/cache_size.h"

#include <algorithm>

#include "kintsugi/config/choices.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::evaluate {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30, kPositions = 8192;

}  // namespace

int64_t cache_bytes(const config::Settings& s, int64_t positions) {
  return 2 * s.model.layers * positions * s.model.kv_heads * config::width_of_head(s.model) *
         tensor::size_of(tensor::dtype_from(s.train.dtype));
}

int64_t default_positions(const config::Settings& s, int64_t texts) {
  const int64_t all = s.model.context;
  return texts * cache_bytes(s, all) <= kMostBytes ? all : std::min(all, kPositions);
}

int64_t texts_that_fit(const config::Settings& s, int64_t positions, int64_t most) {
  return std::clamp<int64_t>(kMostBytes / std::max<int64_t>(cache_bytes(s, positions), 1), 1, most);
}

}  // namespace kintsugi::evaluate

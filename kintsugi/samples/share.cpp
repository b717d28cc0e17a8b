#include "kintsugi/samples/share.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::samples {

void require_even(const Share& share) {
  base::require(share.ranks > 0 && share.rank >= 0 && share.rank < share.ranks, "data", "rank {} of {}", share.rank,
                share.ranks);
  const int64_t pass = share.micro_batch * share.ranks;
  const auto even = [&](int64_t samples) { return samples > 0 && pass > 0 && samples % pass == 0; };
  if (even(share.global_batch) && std::ranges::all_of(share.warmup, even, &config::BatchStage::samples)) return;
  throw base::UserError("data", "global_batch {} is not a multiple of micro_batch {} times {} data ranks",
                        share.global_batch, share.micro_batch, share.ranks);
}

}  // namespace kintsugi::samples

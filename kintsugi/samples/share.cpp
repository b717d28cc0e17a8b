#include "kintsugi/samples/share.h"

#include "kintsugi/base/error.h"

namespace kintsugi::samples {

void require_even(const Share& share) {
  base::require(share.ranks > 0 && share.rank >= 0 && share.rank < share.ranks, "data", "rank {} of {}", share.rank,
                share.ranks);
  const int64_t pass = share.micro_batch * share.ranks;
  if (share.global_batch > 0 && pass > 0 && share.global_batch % pass == 0) return;
  throw base::UserError("data", "global_batch {} is not a multiple of micro_batch {} times {} data ranks",
                        share.global_batch, share.micro_batch, share.ranks);
}

}  // namespace kintsugi::samples

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void cache_write(const KernelCall& call) {
  const View &cache = call.ins[0], &x = call.ins[1], &y = call.outs[0];  // [batch key_seq kv_heads head_dim]
  std::vector<double> keys = load(cache);
  const std::vector<double> fresh = load(x);  // [batch seq kv_heads head_dim]
  const std::vector<int64_t> place_of = local_of_global(call.index("key_seq"));
  const std::vector<int64_t> global = global_of_local(call.index("seq"));
  const int64_t seq = x.size("seq"), key_seq = cache.size("key_seq"), row = stride(x.shape(), "seq");
  for (int64_t b = 0; b < x.size("batch"); ++b) {
    for (int64_t s = 0; s < seq; ++s) {
      const int64_t place = at_or_absent(place_of, global[static_cast<size_t>(s)]);
      if (place < 0) continue;
      for (int64_t i = 0; i < row; ++i) {
        keys[static_cast<size_t>((b * key_seq + place) * row + i)] =
            fresh[static_cast<size_t>((b * seq + s) * row + i)];
      }
    }
  }
  base::require(keys.size() == static_cast<size_t>(y.elements()), "cache_write", "{} written to {}",
                to_string(cache.shape()), to_string(y.shape()));
  store(call, 0, keys);
}

}  // namespace kintsugi::kernels::reference

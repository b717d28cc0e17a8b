#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/rows.h"

namespace kintsugi::kernels::cpu {

// cache, y: [batch key_seq kv_heads head_dim], x: [batch seq kv_heads head_dim]
void cache_write(const KernelCall& call) {
  const tensor::View &cache = call.ins[0], &x = call.ins[1], &y = call.outs[0];
  const tensor::DimIndex &index = call.index("key_seq"), &seq = call.index("seq");
  if (y.data != cache.data) std::memcpy(y.data, cache.data, static_cast<size_t>(cache.type.bytes()));
  const int64_t bytes = x.size("kv_heads") * x.size("head_dim") * tensor::size_of(x.dtype());
  for (int64_t b = 0; b < x.size("batch"); ++b) {
    for (int64_t s = 0; s < x.size("seq"); ++s) {
      const int64_t at = seq[s] < 0 ? -1 : local_of(index, seq[s]);
      if (at < 0) continue;
      copy_row(y.data + (b * cache.size("key_seq") + at) * bytes, x.data, b * x.size("seq") + s, bytes);
    }
  }
}

}  // namespace kintsugi::kernels::cpu

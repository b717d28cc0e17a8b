#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/rows.h"

namespace kintsugi::kernels::cpu {

// x: [batch seq embed], y: [batch embed]
void take(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  const int64_t last = call.numbers.last, seq = x.size("seq");
  base::require(last >= 0 && last < seq, "take", "position {} of {}", last, seq);
  const int64_t bytes = x.size("embed") * tensor::size_of(x.dtype());
  for (int64_t b = 0; b < x.size("batch"); ++b) copy_row(y.data + b * bytes, x.data, b * seq + last, bytes);
}

}  // namespace kintsugi::kernels::cpu

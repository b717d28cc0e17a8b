#include <cstring>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/rows.h"

namespace kintsugi::kernels::cpu {

// x: [batch seq embed], y: [batch embed]
void first(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  const int64_t bytes = x.size("embed") * tensor::size_of(x.dtype()), at = local_of(call.index("seq"), 0);
  for (int64_t b = 0; b < x.size("batch"); ++b)
    copy_row(y.data + b * bytes, x.data, at < 0 ? -1 : b * x.size("seq") + at, bytes);
}

// dy: [batch embed], dx: [batch seq embed]
void first_grad(const KernelCall& call) {
  const tensor::View &dy = call.ins[0], &dx = call.outs[0];
  const int64_t bytes = dx.size("embed") * tensor::size_of(dx.dtype()), seq = dx.size("seq");
  const int64_t at = local_of(call.index("seq"), 0);
  call.team.for_shares(dx.size("batch"), 1, [&](base::Range r, int) {
    for (int64_t b = r.begin; b < r.end; ++b) {
      std::memset(dx.data + b * seq * bytes, 0, static_cast<size_t>(seq * bytes));
      if (at >= 0) std::memcpy(dx.data + (b * seq + at) * bytes, dy.data + b * bytes, static_cast<size_t>(bytes));
    }
  });
}

}  // namespace kintsugi::kernels::cpu

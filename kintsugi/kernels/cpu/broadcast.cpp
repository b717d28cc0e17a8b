#include <algorithm>
#include <cstring>

#include "kintsugi/kernels/cpu/broadcast_layout.h"
#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

bool broadcast_takes(const Operands& o) {
  return o.ins[0].dtype == o.outs[0].dtype && repeats(o.ins[0].shape, o.outs[0].shape).has_value();
}

// Consecutive copies of x: each step doubles the copied part.
void broadcast(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  const int64_t bytes = x.type.bytes(), total = y.type.bytes();
  if (total == 0) return;
  std::memmove(y.data, x.data, static_cast<size_t>(bytes));
  for (int64_t done = bytes; done < total; done *= 2)
    std::memcpy(y.data + done, y.data, static_cast<size_t>(std::min(done, total - done)));
}

}  // namespace kintsugi::kernels::cpu

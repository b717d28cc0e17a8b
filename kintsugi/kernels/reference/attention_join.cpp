#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void attention_join(const KernelCall& call) {
  using In = AttentionJoinIn;
  std::vector<double> o = load(call.ins[In::kOA]), lse = load(call.ins[In::kLseA]);  // [... head_dim], [...]
  const std::vector<double> o_b = load(call.ins[In::kOB]), lse_b = load(call.ins[In::kLseB]);
  const size_t head_dim = static_cast<size_t>(width(call.ins[In::kOA].shape()));
  for (size_t row = 0; row < lse.size(); ++row) {
    const double a = lse[row], b = lse_b[row], top = std::max(a, b);
    if (std::isinf(top) && top < 0) continue;  // no keys on either side: remains zero
    lse[row] = top + std::log(std::exp(a - top) + std::exp(b - top));
    const double share_a = std::exp(a - lse[row]), share_b = std::exp(b - lse[row]);
    for (size_t i = row * head_dim; i < (row + 1) * head_dim; ++i) o[i] = o[i] * share_a + o_b[i] * share_b;
  }
  store(call, AttentionOut::kO, o);
  store(call, AttentionOut::kLse, lse);
}

}  // namespace kintsugi::kernels::reference

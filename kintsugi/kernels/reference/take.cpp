#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void take(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);  // [batch seq embed]
  const Shape &from = call.ins[0].shape(), &to = call.outs[0].shape();
  const int64_t last = call.numbers.last;
  base::require(last >= 0 && last < from.size("seq"), "take", "position {} of {}", last, to_string(from));
  std::vector<double> y;  // [batch embed]
  for (int64_t i : offsets(to, from)) y.push_back(x[static_cast<size_t>(i + last * stride(from, "seq"))]);
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference

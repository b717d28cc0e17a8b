#include <algorithm>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// Local index of position 0 of the whole seq, or -1.
int64_t first_of(const KernelCall& call) {
  return at_or_absent(local_of_global(call.index("seq")), 0);
}

}  // namespace

// x: [batch seq embed], y: [batch embed]
void first(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);
  const Shape &from = call.ins[0].shape(), &to = call.outs[0].shape();
  const int64_t at = first_of(call);
  std::vector<double> y;
  for (int64_t i : offsets(to, from)) y.push_back(at < 0 ? 0.0 : x[static_cast<size_t>(i + at * stride(from, "seq"))]);
  store(call, 0, y);
}

// dy: [batch embed], dx: [batch seq embed]
void first_grad(const KernelCall& call) {
  const std::vector<double> dy = load(call.ins[0]);
  const Shape &from = call.ins[0].shape(), &to = call.outs[0].shape();
  const int64_t at = first_of(call);
  std::vector<double> dx(static_cast<size_t>(to.elements()), 0.0);
  size_t next = 0;
  for (int64_t i : offsets(from, to)) {
    if (at >= 0) dx[static_cast<size_t>(i + at * stride(to, "seq"))] = dy[next];
    ++next;
  }
  store(call, 0, dx);
}

}  // namespace kintsugi::kernels::reference

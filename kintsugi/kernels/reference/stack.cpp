#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/parts.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::reference {

namespace {

// Calls f(run of the stacked operand, run of the whole one or -1) for every run.
template <typename F>
void for_runs(const KernelCall& call, const Parts& s, const F& f) {
  int64_t run = 0;
  for (int64_t part = 0; part < s.parts; ++part) {
    const tensor::DimIndex& index = part_index(call, part);
    for (int64_t a = 0; a < s.above; ++a) {
      for (int64_t i = 0; i < s.length; ++i) f(run++, index[i] < 0 ? -1 : a * s.size + index[i]);
    }
  }
}

}  // namespace

void stack(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  const Parts s = parts_of(call, x, y);
  for_runs(call, s, [&](int64_t to, int64_t from) {
    if (from < 0) {
      std::fill_n(y.data + to * s.below, s.below, std::byte{0});
    } else {
      std::copy_n(x.data + from * s.below, s.below, y.data + to * s.below);
    }
  });
}

void unstack(const KernelCall& call) {
  const tensor::View &y = call.ins[0], &x = call.outs[0];
  const Parts s = parts_of(call, x, y);
  for_runs(call, s, [&](int64_t from, int64_t to) {
    if (to >= 0) std::copy_n(y.data + from * s.below, s.below, x.data + to * s.below);
  });
}

}  // namespace kintsugi::kernels::reference

#include <algorithm>
#include <cstring>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/padding.h"

namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kGrain = 1 << 15;  // bytes

}  // namespace

void clear_padding(const KernelCall& call, const tensor::View& y, size_t axis) {
  const tensor::DimIndex& index = call.index(y.shape()[axis].name);
  base::require(index.local() == y.shape()[axis].size, "kernel", "an index of {} positions for \"{}\" of size {}",
                index.local(), y.shape()[axis].name, y.shape()[axis].size);
  const int64_t below = y.shape().stride(axis) * tensor::size_of(y.dtype()), line = y.shape()[axis].size * below;
  int64_t place = 0;
  for (const tensor::Segment& s : index.segments()) {
    const int64_t bytes = s.count * below, begin = place;
    place += bytes;
    if (s.global >= 0 || bytes == 0) continue;
    call.team.for_shares(y.type.bytes() / line * bytes, kGrain, [&](base::Range r, int) {
      for (int64_t at = r.begin; at < r.end;) {
        const int64_t row = at / bytes, some = std::min((row + 1) * bytes, r.end) - at;
        std::memset(y.data + row * line + begin + at - row * bytes, 0, static_cast<size_t>(some));
        at += some;
      }
    });
  }
}

bool mask_takes(const Operands&) {
  return true;
}

void mask(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  if (y.data != x.data) {
    call.team.for_shares(y.type.bytes(), kGrain, [&](base::Range r, int) {
      std::memcpy(y.data + r.begin, x.data + r.begin, static_cast<size_t>(r.size()));
    });
  }
  for (size_t axis = 0; axis < y.shape().rank(); ++axis) clear_padding(call, y, axis);
}

}  // namespace kintsugi::kernels::cpu

#include <algorithm>
#include <cstring>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kGrain = 1 << 14;  // bytes

void clear(const tensor::View& y, base::ThreadTeam& team) {
  team.for_shares(y.type.bytes(), kGrain,
                  [&](base::Range r, int) { std::memset(y.data + r.begin, 0, static_cast<size_t>(r.size())); });
}

}  // namespace

bool fill_takes(const Operands& o) {
  for (size_t i = 0; i < o.outs.size(); ++i)
    if (!tensor::is_floating(o.outs[i].dtype) && o.attributes.number("value") != 0) return false;
  return true;
}

void fill(const KernelCall& call) {
  const double value = call.attributes.number("value");
  for (const tensor::View& y : call.outs) {
    if (value == 0) {  // the same bytes in every dtype
      clear(y, call.team);
      continue;
    }
    tensor::dispatch(y.dtype(), [&]<typename T>(T) {
      const T element = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(value));
      T* to = reinterpret_cast<T*>(y.data);
      call.team.for_shares(y.elements(), 4096,
                           [&](base::Range r, int) { std::fill_n(to + r.begin, r.size(), element); });
    });
  }
}

}  // namespace kintsugi::kernels::cpu

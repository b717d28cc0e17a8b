#include <algorithm>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

bool fill_takes(const Operands& o) {
  return tensor::is_floating(o.outs[0].dtype);
}

void fill(const KernelCall& call) {
  const tensor::View& y = call.outs[0];
  const double value = call.attributes.number("value");
  tensor::dispatch(y.dtype(), [&]<typename T>(T) {
    const T element = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(value));
    T* to = reinterpret_cast<T*>(y.data);
    call.team.for_shares(y.elements(), 4096, [&](base::Range r, int) { std::fill_n(to + r.begin, r.size(), element); });
  });
}

}  // namespace kintsugi::kernels::cpu

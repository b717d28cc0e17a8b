#include <algorithm>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void accumulate(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  if (x.dtype() == tensor::DType::u8 && y.dtype() == x.dtype() && !call.accumulates(0)) {  // codes
    std::copy_n(x.data, x.type.bytes(), y.data);
    return;
  }
  store(call, 0, load(call.ins[0]));
}

}  // namespace kintsugi::kernels::reference

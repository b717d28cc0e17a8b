#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void cast(const KernelCall& call) {
  store(call, 0, load(call.ins[0]));
}

}  // namespace kintsugi::kernels::reference

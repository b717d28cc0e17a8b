#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::reference {

void silu(const KernelCall& call) {
  apply(activation("silu"), call);
}

void silu_grad(const KernelCall& call) {
  apply_grad(activation("silu"), call);
}

}  // namespace kintsugi::kernels::reference

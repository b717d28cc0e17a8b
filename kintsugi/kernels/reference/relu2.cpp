#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::reference {

void relu2(const KernelCall& call) {
  apply(activation("relu2"), call);
}

void relu2_grad(const KernelCall& call) {
  apply_grad(activation("relu2"), call);
}

}  // namespace kintsugi::kernels::reference

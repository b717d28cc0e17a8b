#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::reference {

void relu(const KernelCall& call) {
  apply(activation("relu"), call);
}

void relu_grad(const KernelCall& call) {
  apply_grad(activation("relu"), call);
}

}  // namespace kintsugi::kernels::reference

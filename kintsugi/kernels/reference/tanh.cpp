#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::reference {

void tanh(const KernelCall& call) {
  apply(activation("tanh"), call);
}

void tanh_grad(const KernelCall& call) {
  apply_grad(activation("tanh"), call);
}

}  // namespace kintsugi::kernels::reference

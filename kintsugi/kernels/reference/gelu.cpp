#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::reference {

void gelu(const KernelCall& call) {
  apply(activation_of("gelu", call.attributes), call);
}

void gelu_grad(const KernelCall& call) {
  apply_grad(activation_of("gelu_grad", call.attributes), call);
}

}  // namespace kintsugi::kernels::reference

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::reference {

namespace {

const Activation& form_of(const KernelCall& call) {
  const std::string& form = call.attributes.text("form");
  base::require(form == "tanh" || form == "erf", "gelu", "no form \"{}\"; there are tanh, erf", form);
  return activation(form == "tanh" ? "gelu_tanh" : "gelu");
}

}  // namespace

void gelu(const KernelCall& call) {
  apply(form_of(call), call);
}

void gelu_grad(const KernelCall& call) {
  apply_grad(form_of(call), call);
}

}  // namespace kintsugi::kernels::reference

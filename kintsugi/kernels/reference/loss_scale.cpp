#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void loss_scale(const KernelCall& call) {
  using In = LossScaleIn;
  const bool finite = load_scalar(call.ins[In::kFinite]) != 0;
  double scale = load_scalar(call.ins[In::kScale]), good = load_scalar(call.ins[In::kGood]);
  if (!finite) {
    scale = scale / 2 < 1 ? 1 : scale / 2;
    good = 0;
  } else if (good + 1 < static_cast<double>(call.attributes.integer("growth_interval"))) {
    good += 1;
  } else {
    scale = scale * 2 > 16777216 ? 16777216 : scale * 2;
    good = 0;
  }
  store(call, 0, {&scale, 1});
  store(call, 1, {&good, 1});
}

}  // namespace kintsugi::kernels::reference

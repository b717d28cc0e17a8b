#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void update_scale(const KernelCall& call) {
  using In = UpdateScaleIn;
  using Out = UpdateScaleOut;
  const double count = load_scalar(call.ins[In::kCount]), loss_scale = load_scalar(call.ins[In::kLossScale]);
  const double clip = call.attributes.number("clip");
  double squares = 0;
  for (const View& blocks : call.ins.subspan(In::kBlocks)) {
    for (double block : load(blocks)) squares += block;
  }
  const double s = 1 / (count * loss_scale);
  const double norm = s * std::sqrt(squares);
  const double finite = std::isfinite(norm) && count > 0 ? 1 : 0;
  double factor = clip > 0 ? s * std::min(1.0, clip / (norm + 1e-6)) : s;
  if (finite == 0) factor = 0;
  store(call, Out::kNorm, {&norm, 1});
  store(call, Out::kFactor, {&factor, 1});
  store(call, Out::kFinite, {&finite, 1});
}

}  // namespace kintsugi::kernels::reference

#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void update_scale(const KernelCall& call) {
  const double count = load_scalar(call.ins[0]), loss_scale = load_scalar(call.ins[1]);
  const double clip = call.attributes.number("clip");
  double squares = 0;
  for (const View& blocks : call.ins.subspan(2)) {
    for (double block : load(blocks)) squares += block;
  }
  const double s = 1 / (count * loss_scale);
  const double norm = s * std::sqrt(squares);
  const double finite = std::isfinite(norm) && count > 0 ? 1 : 0;
  double factor = clip > 0 ? s * std::min(1.0, clip / (norm + 1e-6)) : s;
  if (finite == 0) factor = 0;
  store(call, 0, {&norm, 1});
  store(call, 1, {&factor, 1});
  store(call, 2, {&finite, 1});
}

}  // namespace kintsugi::kernels::reference

#include <algorithm>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

void loss_scale(const KernelCall& call) {
  using In = LossScaleIn;
  const auto scalar = [&](size_t i) { return call.ins[i].as<double>()[0]; };
  const bool finite = scalar(In::kFinite) != 0;
  const double scale = scalar(In::kScale), good = scalar(In::kGood) + 1;
  const bool grows = good >= static_cast<double>(call.attributes.integer("growth_interval"));
  constexpr double kLargest = 1 << 24;
  call.outs[0].as<double>()[0] = !finite ? std::max(scale / 2, 1.0) : grows ? std::min(scale * 2, kLargest) : scale;
  call.outs[1].as<double>()[0] = finite && !grows ? good : 0;
}

}  // namespace kintsugi::kernels::cpu

#include <algorithm>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

void loss_scale(const KernelCall& call) {
  const bool finite = call.ins[0].as<double>()[0] != 0;
  const double scale = call.ins[1].as<double>()[0], good = call.ins[2].as<double>()[0] + 1;
  const bool grows = good >= static_cast<double>(call.attributes.integer("growth_interval"));
  constexpr double kLargest = 1 << 24;
  call.outs[0].as<double>()[0] = !finite ? std::max(scale / 2, 1.0) : grows ? std::min(scale * 2, kLargest) : scale;
  call.outs[1].as<double>()[0] = finite && !grows ? good : 0;
}

}  // namespace kintsugi::kernels::cpu

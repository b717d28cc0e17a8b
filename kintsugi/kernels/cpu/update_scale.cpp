#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

// A single thread adds blocks in order: they are a thousand times fewer than elements.
void update_scale(const KernelCall& call) {
  using In = UpdateScaleIn;
  using Out = UpdateScaleOut;
  const double count = call.ins[In::kCount].as<double>()[0], loss_scale = call.ins[In::kLossScale].as<double>()[0];
  const double clip = call.attributes.number("clip");
  double squares = 0;
  for (const tensor::View& blocks : call.ins.subspan(In::kBlocks))
    for (const double block : blocks.as<double>()) squares += block;
  const double s = 1 / (count * loss_scale), norm = s * std::sqrt(squares);
  const bool finite = std::isfinite(norm) && count > 0;
  call.outs[Out::kNorm].as<double>()[0] = norm;
  call.outs[Out::kFactor].as<double>()[0] = !finite ? 0 : clip > 0 ? s * std::min(1.0, clip / (norm + 1e-6)) : s;
  call.outs[Out::kFinite].as<double>()[0] = finite ? 1 : 0;
}

bool scalars_take(const Operands& o) {
  for (size_t i = 0; i < o.ins.size(); ++i)
    if (o.ins[i].dtype != tensor::DType::f64) return false;
  for (size_t i = 0; i < o.outs.size(); ++i)
    if (o.outs[i].dtype != tensor::DType::f64) return false;
  return true;
}

}  // namespace kintsugi::kernels::cpu

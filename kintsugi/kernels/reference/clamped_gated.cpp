#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/experts.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void clamped_gated(const KernelCall& call) {
  const std::vector<double> gate = load(call.ins[GatedIn::kGate]), up = load(call.ins[GatedIn::kUp]);
  const double clamp = call.attributes.number("clamp"), slope = call.attributes.number("slope");
  std::vector<double> y(gate.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const double g = std::min(gate[i], clamp), u = std::clamp(up[i], -clamp, clamp);
    y[i] = g / (1.0 + std::exp(-slope * g)) * (u + 1.0);
  }
  clear_unused_slots(call, call.outs[0].shape(), call.ins[GatedIn::kCounts], y);
  store(call, 0, y);
}

void clamped_gated_grad(const KernelCall& call) {
  const std::vector<double> gate = load(call.ins[GatedGradIn::kGate]), up = load(call.ins[GatedGradIn::kUp]),
                            dy = load(call.ins[GatedGradIn::kDy]);
  const double clamp = call.attributes.number("clamp"), slope = call.attributes.number("slope");
  std::vector<double> dgate(gate.size(), 0.0), dup(gate.size(), 0.0);
  for (size_t i = 0; i < dy.size(); ++i) {
    const double g = std::min(gate[i], clamp), u = std::clamp(up[i], -clamp, clamp);
    const double s = 1.0 / (1.0 + std::exp(-slope * g));
    if (gate[i] <= clamp) dgate[i] = dy[i] * (u + 1.0) * s * (1.0 + slope * g * (1.0 - s));
    if (std::abs(up[i]) <= clamp) dup[i] = dy[i] * g * s;
  }
  for (std::vector<double>* d : {&dgate, &dup})
    clear_unused_slots(call, call.outs[0].shape(), call.ins[GatedGradIn::kCounts], *d);
  store(call, 0, dgate);
  store(call, 1, dup);
}

}  // namespace kintsugi::kernels::reference

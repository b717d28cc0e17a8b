#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/experts.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void gated(const KernelCall& call) {
  const Activation& act = activation(call.attributes.text("activation"));
  const std::vector<double> gate = load(call.ins[GatedIn::kGate]);
  std::vector<double> y = load(call.ins[GatedIn::kUp]);
  for (size_t i = 0; i < y.size(); ++i) y[i] *= act.value(gate[i]);
  clear_unused_slots(call, call.outs[0].shape(), call.ins[GatedIn::kCounts], y);
  store(call, 0, y);
}

void gated_grad(const KernelCall& call) {
  const Activation& act = activation(call.attributes.text("activation"));
  using In = GatedGradIn;
  const std::vector<double> gate = load(call.ins[In::kGate]), up = load(call.ins[In::kUp]),
                            dy = load(call.ins[In::kDy]);
  std::vector<double> dgate(gate.size()), dup(gate.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    dgate[i] = dy[i] * up[i] * act.slope(gate[i]);
    dup[i] = dy[i] * act.value(gate[i]);
  }
  for (std::vector<double>* d : {&dgate, &dup})
    clear_unused_slots(call, call.outs[0].shape(), call.ins[In::kCounts], *d);
  store(call, 0, dgate);
  store(call, 1, dup);
}

}  // namespace kintsugi::kernels::reference

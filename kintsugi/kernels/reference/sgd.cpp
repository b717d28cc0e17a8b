#include "kintsugi/kernels/optimizer_operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void sgd(const KernelCall& call) {
  using In = SgdIn;
  using Out = SgdOut;
  std::vector<double> w = load(call.ins[In::kW]), m = load(call.ins[In::kM]);
  const std::vector<double> g = load(call.ins[In::kG]);
  const double factor = load_scalar(call.ins[In::kFactor]);
  const double momentum = call.attributes.number("momentum"), decay = call.attributes.number("weight_decay");
  const bool nesterov = call.attributes.integer_or("nesterov", 0) != 0;
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * factor + decay * w[i];
      m[i] = momentum * m[i] + gradient;
      w[i] -= rate_of(call) * (nesterov ? gradient + momentum * m[i] : m[i]);
    }
  }
  store(call, Out::kW, w);
  store(call, Out::kM, m);
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // rounded from the master as stored
}

}  // namespace kintsugi::kernels::reference

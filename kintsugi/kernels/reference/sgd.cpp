#include "kintsugi/kernels/operands.h"
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
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = momentum * m[i] + (g[i] * factor + decay * w[i]);
      w[i] -= call.numbers.learning_rate * m[i];
    }
  }
  store(call, Out::kW, w);
  store(call, Out::kM, m);
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // of the master as it is stored
}

}  // namespace kintsugi::kernels::reference

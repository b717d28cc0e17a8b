#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void sgd(const KernelCall& call) {
  std::vector<double> w = load(call.ins[0]), m = load(call.ins[2]);
  const std::vector<double> g = load(call.ins[1]);
  const double factor = load_scalar(call.ins[3]);
  const double momentum = call.attributes.number("momentum"), decay = call.attributes.number("weight_decay");
  if (load_scalar(call.ins[4]) != 0) {
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = momentum * m[i] + (g[i] * factor + decay * w[i]);
      w[i] -= call.numbers.learning_rate * m[i];
    }
  }
  store(call, 0, w);
  store(call, 1, m);
  if (call.outs.size() > 2) store(call, 2, load(call.outs[0]));  // of the master as it is stored
}

}  // namespace kintsugi::kernels::reference

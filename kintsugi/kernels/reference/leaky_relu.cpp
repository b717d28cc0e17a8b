#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void leaky_relu(const KernelCall& call) {
  const double slope = call.attributes.number("slope");
  std::vector<double> y = load(call.ins[0]);
  for (double& v : y) v = v > 0 ? v : slope * v;
  store(call, 0, y);
}

void leaky_relu_grad(const KernelCall& call) {
  const double slope = call.attributes.number("slope");
  const std::vector<double> x = load(call.ins[0]);
  std::vector<double> dx = load(call.ins[1]);
  for (size_t i = 0; i < x.size(); ++i) dx[i] *= x[i] > 0 ? 1 : slope;
  store(call, 0, dx);
}

}  // namespace kintsugi::kernels::reference

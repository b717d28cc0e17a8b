#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void scale(const KernelCall& call) {
  const double by = call.attributes.number("by");
  std::vector<double> y = load(call.ins[0]);
  for (double& element : y) element *= by;
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference

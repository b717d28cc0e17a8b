#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

// x: [batch ...]
void drop_path(const KernelCall& call) {
  std::vector<double> y = load(call.ins[0]);
  const DropoutMask mask(call, call.attributes.number("p"), call.attributes.text("key"));
  const tensor::Dim batch = call.ins[0].shape()[0];
  const std::vector<int64_t> position = positions_in_whole(call, Shape{batch});
  const size_t below = batch.size == 0 ? 0 : y.size() / static_cast<size_t>(batch.size);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t at = position[i / below];
    const double factor = at < 0 ? 0 : mask(at);
    y[i] = factor == 0 ? 0 : y[i] * factor;
  }
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference

#include <algorithm>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void mask(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  const int64_t bytes = tensor::size_of(x.dtype());
  const std::vector<int64_t> position = positions_in_whole(call, x.shape());
  for (int64_t i = 0; i < x.elements(); ++i) {
    std::byte* to = y.data + i * bytes;
    if (position[static_cast<size_t>(i)] < 0) {
      std::fill_n(to, bytes, std::byte{0});
    } else if (y.data != x.data) {
      std::copy_n(x.data + i * bytes, bytes, to);
    }
  }
}

}  // namespace kintsugi::kernels::reference

#include <algorithm>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void fill(const KernelCall& call) {
  const double value = call.attributes.number("value");
  for (size_t i = 0; i < call.outs.size(); ++i) {
    const View& y = call.outs[i];
    if (value == 0) {  // all-zero bytes in every dtype
      std::fill_n(y.data, y.type.bytes(), std::byte{0});
    } else {
      store(call, i, std::vector<double>(static_cast<size_t>(y.elements()), value));
    }
  }
}

}  // namespace kintsugi::kernels::reference

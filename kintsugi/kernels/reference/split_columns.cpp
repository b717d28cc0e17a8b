#include <algorithm>
#include <vector>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void split_columns(const KernelCall& call) {
  const size_t parts = call.outs.size() / call.ins.size();
  for (size_t i = 0; i < call.ins.size(); ++i) {
    const std::vector<double> x = load(call.ins[i]);
    const int64_t row = width(call.ins[i].shape()), above = rows(call.ins[i].shape());
    int64_t begin = 0;
    for (size_t output = i * parts; output < (i + 1) * parts; ++output) {
      const int64_t columns = call.outs[output].elements() / std::max<int64_t>(above, 1);
      std::vector<double> y;
      for (int64_t r = 0; r < above; ++r) {
        const auto from = x.begin() + r * row + begin;
        y.insert(y.end(), from, from + columns);
      }
      store(call, output, y);
      begin += columns;
    }
  }
}

}  // namespace kintsugi::kernels::reference

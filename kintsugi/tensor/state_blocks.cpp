#include "kintsugi/tensor/state_blocks.h"

#include <string>
#include <vector>

namespace kintsugi::tensor {

Shape scales_of(const Shape& weight) {
  int64_t elements = 1;
  for (size_t i = weight.rank(); i-- > 0;) {
    elements *= weight[i].size;
    if (elements % kStateBlock != 0) continue;
    std::vector<Dim> dims(weight.dims().begin(), weight.dims().begin() + static_cast<std::ptrdiff_t>(i) + 1);
    dims.back().size = elements / kStateBlock;
    return Shape(dims);
  }
  return {{std::string(kStateBlockDim), (elements + kStateBlock - 1) / kStateBlock}};
}

}  // namespace kintsugi::tensor

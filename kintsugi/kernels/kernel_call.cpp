#include "kintsugi/base/error.h"
#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

const tensor::DimIndex& KernelCall::index(std::string_view dim) const {
  for (const NamedIndex& i : indices)
    if (i.dim == dim) return i.index;
  throw base::InternalError("kernel", "no index for dim \"{}\"", dim);
}

}  // namespace kintsugi::kernels

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

const tensor::DimIndex& KernelCall::index(std::string_view dim) const {
  for (const NamedIndex& i : indices)
    if (i.dim == dim && !i.windowed) return i.index;
  throw base::InternalError("kernel", "no index for dim \"{}\"", dim);
}

const tensor::DimIndex& KernelCall::window_index(std::string_view dim) const {
  static const tensor::DimIndex all(INT64_MAX);
  for (const NamedIndex& i : indices)
    if (i.dim == dim && i.windowed) return i.index;
  return all;
}

}  // namespace kintsugi::kernels

#include "kintsugi/kernels/kernel_set.h"

#include "kintsugi/base/error.h"

namespace kintsugi::kernels {

const tensor::DimIndex& KernelCall::index(std::string_view dim) const {
  for (const NamedIndex& i : indices)
    if (i.dim == dim) return i.index;
  throw base::InternalError("kernel", "no index for dim \"{}\"", dim);
}

std::unique_ptr<KernelSet> kernels_named(std::string_view name, tensor::DType dtype) {
  return name == "reference" || dtype == tensor::DType::f64 ? reference_kernels() : cpu_kernels();
}

}  // namespace kintsugi::kernels

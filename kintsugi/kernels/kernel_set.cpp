#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

std::unique_ptr<KernelSet> kernels_named(std::string_view name, tensor::DType dtype) {
  return name == "reference" || dtype == tensor::DType::f64 ? reference_kernels() : cpu_kernels();
}

}  // namespace kintsugi::kernels

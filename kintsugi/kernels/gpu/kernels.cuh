// The list of the kernels of devices. Operands and outputs of each are those of the reference.
#include "kintsugi/kernels/gpu/kernels.h"
#include "kintsugi/kernels/gpu/rows.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr kernels::DeviceRow kRows[] = {
    {"gelu", gelu},   {"gelu_grad", gelu_grad},   {"relu", relu}, {"relu_grad", relu_grad},
    {"relu2", relu2}, {"relu2_grad", relu2_grad}, {"silu", silu}, {"silu_grad", silu_grad},
    {"tanh", tanh},   {"tanh_grad", tanh_grad},
};

}  // namespace

std::span<const kernels::DeviceRow> rows() {
  return kRows;
}

}  // namespace kintsugi::KINTSUGI_GPU

#if KINTSUGI_ON_GPU
extern "C" __attribute__((visibility("default"))) void kintsugi_device_rows_1(
    std::span<const kintsugi::kernels::DeviceRow>* rows) {
  *rows = kintsugi::KINTSUGI_GPU::rows();
}
#endif

// Convolutions by a library, which has the weights of a filter adjacent: they are transposed in the workspace.
#pragma once

#include "kintsugi/kernels/gpu/convolution.h"
#include "kintsugi/kernels/gpu/convolution_sizes.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kTransposed = 32, kTransposeRows = kPieceThreads / kTransposed;

// to [columns rows] = from [rows columns], or += that.
__global__ void __launch_bounds__(kPieceThreads)
    transpose_weights(AnyData from, AnyData to, int64_t rows, int64_t columns, bool add) {
  __shared__ float tile[kTransposed][kTransposed + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTransposed,
                column = static_cast<int64_t>(blockIdx.x) * kTransposed;
  const int x = static_cast<int>(threadIdx.x) % kTransposed, y = static_cast<int>(threadIdx.x) / kTransposed;
  for (int i = y; i < kTransposed; i += kTransposeRows) {
    float one[1] = {0};
    if (row + i < rows && column + x < columns) from.load(one, (row + i) * columns + column + x);
    tile[i][x] = one[0];
  }
  __syncthreads();
  for (int i = y; i < kTransposed; i += kTransposeRows) {
    const float one[1] = {tile[x][i]};
    if (row + x < rows && column + i < columns) to.put((column + i) * rows + row + x, one, add);
  }
}

void launch_transpose(const KernelCall& call, const AnyData& from, const AnyData& to, int64_t rows, int64_t columns,
                      bool add) {
  launch(*call.stream,
         dim3(static_cast<unsigned>(quotient_up(columns, kTransposed)),
              static_cast<unsigned>(quotient_up(rows, kTransposed))),
         dim3(kPieceThreads), 0, transpose_weights, from, to, rows, columns, add);
}

// Whether a library may be asked. Depends on shapes and types only.
inline bool is_library_convolution(const ConvolutionSizes& s, const tensor::Type& a, const tensor::Type& b,
                                   const tensor::Type& c) {
  constexpr int64_t kMostRows = int64_t{65535} * kTransposed;  // of a grid
  const bool stored = a.dtype == DType::f32 || a.dtype == DType::bf16 || a.dtype == DType::f16;
  return stored && a.dtype == b.dtype && a.dtype == c.dtype && !s.is_thin() && s.samples > 0 && s.channels > 0 &&
         s.outputs() > 0 && std::max<int64_t>(s.weight_rows(), s.all_filters()) <= kMostRows;
}

// Of the weights in the library's order, in fp32 or less.
inline int64_t transposed_bytes(const tensor::Type& w) {
  return (w.shape.elements() * 4 + 255) / 256 * 256;
}
inline int64_t library_workspace(const tensor::Type& x, const tensor::Type& w, const tensor::Type& y) {
  return transposed_bytes(w) + kernels::library_convolution_bytes(x.bytes(), w.bytes(), y.bytes());
}

// The request without its operands; nothing if the library does not have such padding.
inline std::optional<kernels::LibraryConvolution> library_convolution(const ConvolutionSizes& s) {
  kernels::LibraryConvolution made = {.axes = s.axis[0].in == 1 && s.axis[0].kernel == 1 && s.axis[0].low == 0 ? 2 : 3,
                                      .samples = s.samples,
                                      .channels = s.all_channels(),
                                      .filters = s.all_filters(),
                                      .groups = s.groups};
  for (int d = 0; d < kConvolutionAxes; ++d) {
    const ConvolutionAxis& a = s.axis[d];
    // Up to a stride minus one positions of x may remain unused.
    const int beyond = (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.low - a.in;
    if (a.low < 0 || beyond <= -a.stride) return std::nullopt;
    made.axis[d] = {a.in, a.out, a.kernel, a.stride, a.dilation, a.low, std::max(beyond, 0)};
  }
  return made;
}

// Returns false, with nothing done, if our own kernels must be used. The library reads absent positions of x, which are
// zero in every value of a program, and may write to those of dx, which halo_add ignores.
template <kernels::ConvolutionPass kPass>
bool convolve_by_library(const KernelCall& call, const ConvolutionSizes& s) {
  using kernels::ConvolutionPass;
  std::optional<kernels::LibraryConvolution> asked = library_convolution(s);
  const View &first = call.ins[0], &second = call.ins[1], &out = call.outs[0];
  if (convolution_by_library == nullptr || !asked || tensor::output_part(call.attributes)) return false;
  if (!all_wide(first.data, kPass == ConvolutionPass::weight ? second.data : out.data)) return false;
  const tensor::Type& w = kPass == ConvolutionPass::weight ? out.type : second.type;
  const int64_t transposed = transposed_bytes(w), rows = s.weight_rows(), filters = s.all_filters();
  if (static_cast<int64_t>(call.workspace.size()) <= transposed) return false;
  void* const weights = call.workspace.data();
  asked->pass = kPass, asked->dtype = first.dtype(), asked->tf32 = call.tf32;
  asked->w = weights;
  asked->workspace = call.workspace.data() + transposed;
  asked->workspace_bytes = std::min(
      static_cast<int64_t>(call.workspace.size()) - transposed,
      kernels::library_convolution_bytes((kPass == ConvolutionPass::input ? out : first).type.bytes(), w.bytes(),
                                         (kPass == ConvolutionPass::forward ? out
                                          : kPass == ConvolutionPass::input ? first
                                                                            : second)
                                             .type.bytes()));
  device::NoStream nothing;
  if constexpr (kPass == ConvolutionPass::weight) {
    asked->x = first.data, asked->y = second.data;
    for (const DType dtype : {DType::f32, first.dtype()}) {
      asked->dw_dtype = dtype;
      if (!convolution_by_library(*asked, nothing)) continue;
      base::require(convolution_by_library(*asked, *call.stream), "kernel", "a library refuses what it accepted");
      launch_transpose(call, {weights, dtype}, any_data(call.kind, out), filters, rows, call.accumulates(0));
      return true;
    }
    return false;
  } else {
    asked->x = kPass == ConvolutionPass::input ? out.data : first.data;
    asked->y = kPass == ConvolutionPass::input ? first.data : out.data;
    if (!convolution_by_library(*asked, nothing)) return false;
    launch_transpose(call, any_data(call.kind, second), {weights, second.dtype()}, rows, filters, false);
    base::require(convolution_by_library(*asked, *call.stream), "kernel", "a library refuses what it accepted");
    return true;
  }
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU

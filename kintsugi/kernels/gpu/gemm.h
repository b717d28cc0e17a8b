// Matrix products on a device. With few rows, as in decoding, by special kernels (thin.cuh); else by a library if
// present (cuda/cublaslt.cu), or by our own kernels (gemm.cuh). Accumulates in fp32, or in fp64 for fp64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kintsugi/device/gpu.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::KINTSUGI_GPU {

// Maximum workspace of a product, in bytes; the size available decides which algorithm the library selects.
constexpr int64_t kGemmWorkspace = 32 << 20;
// Useful workspace for products with that many elements of c: some partial sums of each.
inline int64_t gemm_workspace(int64_t elements) {
  constexpr int64_t kSums = 64;
  return elements >= kGemmWorkspace / (4 * kSums) ? kGemmWorkspace : (elements * 4 * kSums + 255) / 256 * 256;
}

constexpr size_t kMostProducts = 4;  // with few rows, per launch

// A row-major matrix with row stride `step` in elements; `transposed`: its transpose is multiplied.
struct GemmOperand {
  const void* data = nullptr;
  int64_t step = 0;
  bool transposed = false;
};

// A batch dim, with strides in elements.
struct GemmBatch {
  int64_t size = 1, a = 0, b = 0, c = 0, bias = 0;
};

constexpr int kMostGemmBatches = 6;

enum class GemmFunction : uint8_t { none, gelu_tanh, gelu_erf, silu, relu, relu2, tanh };

// Epilogue: y = f(x), or y = f'(x) y if `slope`. x and y have the layout and type of c, and may alias.
struct GemmEpilogue {
  GemmFunction function = GemmFunction::none;
  bool slope = false;
  void* x = nullptr;
  void* y = nullptr;

  constexpr explicit operator bool() const { return function != GemmFunction::none; }
  constexpr void* product() const { return slope ? y : x; }
  constexpr bool keeps() const { return !slope && x != y; }
};

// c [m n] = a [m k] b [k n] + bias, or c += that, for each point of the batch dims; then the epilogue, whose product()
// is c.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  tensor::DType dtype = tensor::DType::f32;    // of a and b: fp32, bf16, fp16
  tensor::DType c_dtype = tensor::DType::f32;  // the same, or fp32
  bool tf32 = false;                           // fp32 operands may be rounded to TF32
  GemmOperand a, b;
  void* c = nullptr;
  int64_t c_step = 0;
  bool accumulate = false;
  const void* bias = nullptr;  // null: none. Element (i, j) is at i * bias_row + j * bias_column
  tensor::DType bias_dtype = tensor::DType::f32;
  int64_t bias_row = 0, bias_column = 0;
  GemmEpilogue epilogue = {};
  const void* added = nullptr;  // null: none. Same layout and type as c. Library only
  std::array<GemmBatch, kMostGemmBatches> batch = {};
  int num_batch = 0;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;

  int64_t products() const {
    int64_t count = 1;
    for (int i = 0; i < num_batch; ++i) count *= batch[static_cast<size_t>(i)].size;
    return count;
  }
};

// The only place that chooses between library and own kernels. Returns false if the product was enqueued but its
// epilogue was not, because the library does not support it; call activate().
bool gemm(const Gemm& g, device::Stream& stream);
// A product with at most kThinRows rows, and a b of suitable size that can be read 16 bytes at a time, including
// epilogue; returns false if it does not apply. Bound by reading b.
constexpr int64_t kThinRows = 4;
// Several independent products, at most kMostProducts, in one launch; returns false, with nothing done, if that is
// impossible. Sums may be taken in another order than by separate launches. `norm`: produces a of all of them, and is
// fused.
struct NormWithin;
bool thin_gemms(std::span<const Gemm> all, device::Stream& stream, const NormWithin* norm = nullptr);
// Applies an epilogue by a separate kernel, on `count` contiguous elements.
void activate(const GemmEpilogue& e, tensor::DType dtype, int64_t count, device::Stream& stream);

// A product by a library; returns false if the library is missing, or has no suitable algorithm. In a stream that
// discards work, only selects an algorithm. Rounds fp32 sums once, after the epilogue.
using LibraryGemm = bool (*)(const Gemm& g, device::Stream& stream);
bool cublaslt_gemm(const Gemm& g, device::Stream& stream);  // cuda/cublaslt.cu

// A product with a fused addition of `added`. Returns false, with nothing done, if no library supports it.
bool gemm_with(Gemm g, const void* added, device::Stream& stream);

// The library that is tried first; null: none, as in the emulation, where tests set it.
extern LibraryGemm library_gemm;

}  // namespace kintsugi::KINTSUGI_GPU

// Products of matrices on a device: with few rows, as when texts are generated, by kernels of their own (thin.cuh);
// else by a library where there is one (cuda/cublaslt.cu) and by our own kernels where not (gemm.cuh). Sums are in
// fp32, of fp64 in fp64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kintsugi/device/gpu.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::KINTSUGI_GPU {

// As much memory as any product is given to work in, in bytes; what it gets decides which algorithm the library takes.
constexpr int64_t kGemmWorkspace = 32 << 20;
// What products with so many elements of c can make use of: some partial sums of each.
inline int64_t gemm_workspace(int64_t elements) {
  constexpr int64_t kSums = 64;
  return elements >= kGemmWorkspace / (4 * kSums) ? kGemmWorkspace : (elements * 4 * kSums + 255) / 256 * 256;
}

constexpr size_t kMostProducts = 4;  // of few rows, by one launch

// A matrix in memory, row by row, `step` elements apart; `transposed`: what is multiplied is its transpose.
struct GemmOperand {
  const void* data = nullptr;
  int64_t step = 0;
  bool transposed = false;
};

// A loop over products: how far apart they are, in elements.
struct GemmBatch {
  int64_t size = 1, a = 0, b = 0, c = 0, bias = 0;
};

constexpr int kMostGemmBatches = 6;

enum class GemmFunction : uint8_t { none, gelu_tanh, gelu_erf, silu, relu, relu2, tanh };

// What is done to a product: y = f(x), or y = f'(x) y where `slope`. x and y lie as c does, in its type; they may be
// one.
struct GemmEpilogue {
  GemmFunction function = GemmFunction::none;
  bool slope = false;
  void* x = nullptr;
  void* y = nullptr;

  constexpr explicit operator bool() const { return function != GemmFunction::none; }
  constexpr void* product() const { return slope ? y : x; }
  constexpr bool keeps() const { return !slope && x != y; }
};

// c [m n] = a [m k] b [k n] + bias, or c += all that; once for each point of the batch dims. Then the epilogue, whose
// product() is c.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  tensor::DType dtype = tensor::DType::f32;    // of a and b: fp32, bf16, fp16
  tensor::DType c_dtype = tensor::DType::f32;  // the same, or fp32
  bool tf32 = false;                           // operands of fp32 may be rounded to TF32
  GemmOperand a, b;
  void* c = nullptr;
  int64_t c_step = 0;
  bool accumulate = false;
  const void* bias = nullptr;  // null: none. That of (i, j) is at i * bias_row + j * bias_column
  tensor::DType bias_dtype = tensor::DType::f32;
  int64_t bias_row = 0, bias_column = 0;
  GemmEpilogue epilogue = {};
  const void* added = nullptr;  // null: none. It lies as c does, in its type. By a library alone
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

// The one place that chooses between the two. False: the product is there, and its epilogue is left to `activate`,
// since the library does the one and not the other.
bool gemm(const Gemm& g, device::Stream& stream);
// A product of at most kThinRows rows whose b can be read 16 bytes at a time and is not too long for it, with all that
// is behind it: false if it is another. It takes as long as reading b.
constexpr int64_t kThinRows = 4;
// Some that are independent, at most kMostProducts: all by one launch, or none. Sums may be taken in another order than
// by each alone.
// `norm`: what makes a of all of them, which does not have to be there yet.
struct NormWithin;
bool thin_gemms(std::span<const Gemm> all, device::Stream& stream, const NormWithin* norm = nullptr);
// By a kernel of its own, of `count` elements side by side.
void activate(const GemmEpilogue& e, tensor::DType dtype, int64_t count, device::Stream& stream);

// A product by a library: false if the library is not there, or none of its algorithms does this. In a stream in which
// nothing is enqueued it only chooses one. It rounds what it did to fp32 sums, an epilogue too, once.
using LibraryGemm = bool (*)(const Gemm& g, device::Stream& stream);
bool cublaslt_gemm(const Gemm& g, device::Stream& stream);  // cuda/cublaslt.cu

// A product with something that is added to it. False, and nothing is done: no library does both at once.
bool gemm_with(Gemm g, const void* added, device::Stream& stream);

// The library that is asked first. Null: none, as in the emulation, where tests set it.
extern LibraryGemm library_gemm;

}  // namespace kintsugi::KINTSUGI_GPU

// Matrix products by our own kernels: 16-bit types on tensor cores, fp32 and fp64 by FMAs. One block of c per thread
// block; k is traversed in one order, so that results do not depend on block shapes.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/gpu/gemm_result.h"
#include "kintsugi/kernels/gpu/gemm_tiles.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// The block of c of a thread block: its first row and column, and the batch element it belongs to.
struct Place {
  int64_t row, column;
  int64_t a = 0, b = 0, c = 0, bias = 0;  // offsets of its operands, in elements
};

// Concurrent blocks share rows of a and columns of b: bands of kBand block rows, column by column.
__device__ inline Place place_of(const Gemm& g, int rows, int columns) {
  constexpr unsigned kBand = 8;
  const auto high = static_cast<unsigned>((g.m + rows - 1) / rows),
             wide = static_cast<unsigned>((g.n + columns - 1) / columns);
  const unsigned block = static_cast<unsigned>(blockIdx.x);
  unsigned product = block / (high * wide);
  const unsigned within = block - product * high * wide;
  const unsigned band = within / (kBand * wide), of_band = within - band * kBand * wide;
  const unsigned band_rows = high - band * kBand < kBand ? high - band * kBand : kBand;
  Place p;
  p.row = static_cast<int64_t>(band * kBand + of_band % band_rows) * rows;
  p.column = static_cast<int64_t>(of_band / band_rows) * columns;
  for (int i = g.num_batch; i-- > 0;) {
    const GemmBatch& d = g.batch[static_cast<size_t>(i)];
    const int64_t at = product % static_cast<unsigned>(d.size);
    product /= static_cast<unsigned>(d.size);
    p.a += at * d.a, p.b += at * d.b, p.c += at * d.c, p.bias += at * d.bias;
  }
  return p;
}

__device__ inline float with_bias(const Gemm& g, const Place& p, int64_t row, int64_t column, float sum) {
  return g.bias == nullptr ? sum
                           : sum + element_of(g.bias, g.bias_dtype, p.bias + row * g.bias_row + column * g.bias_column);
}

// kAcrossA: a is stored [k m]; kAcrossB: b is stored [k n].
template <typename T, bool kAcrossA, bool kAcrossB, int kM, int kN, int kStages>
__global__ void __launch_bounds__(Shape16<kM, kN>::kThreads)
    multiply_16(Gemm g, bool wide_a, bool wide_b, bool wide_c) {
  using S = Shape16<kM, kN>;
  GPU_DYNAMIC_SHARED(T, parts);
  const Place p = place_of(g, kM, kN);
  const T* const a = static_cast<const T*>(g.a.data) + p.a + (kAcrossA ? p.row : p.row * g.a.step);
  const T* const b = static_cast<const T*>(g.b.data) + p.b + (kAcrossB ? p.column : p.column * g.b.step);
  const int64_t rows = g.m - p.row, columns = g.n - p.column;
  const int64_t depth = (g.k + kDepth - 1) / kDepth;

  const auto copy = [&](int64_t step, T* to_a, T* to_b) {
    const int64_t first = step * kDepth, left = g.k - first;
    if constexpr (kAcrossA) {
      copy_part<kDepth, kM, S::kThreads>(to_a, a + first * g.a.step, g.a.step, left, rows, wide_a);
    } else {
      copy_part<kM, kDepth, S::kThreads>(to_a, a + first, g.a.step, rows, left, wide_a);
    }
    if constexpr (kAcrossB) {
      copy_part<kDepth, kN, S::kThreads>(to_b, b + first * g.b.step, g.b.step, left, columns, wide_b);
    } else {
      copy_part<kN, kDepth, S::kThreads>(to_b, b + first, g.b.step, columns, left, wide_b);
    }
  };

  const int lane = static_cast<int>(threadIdx.x) % 32, first_row = S::first_row(), first_column = S::first_column();
  typename S::Sums sums = {};
  multiply_tiles<T, kAcrossA, kAcrossB, kM, kN, kStages>(parts, depth, copy, sums);

  GPU_UNROLL
  for (int i = 0; i < S::kWarpM / 16; ++i) GPU_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t row = p.row + first_row + i * 16 + half * 8 + lane / 4;
    if (row >= g.m) continue;
    GPU_UNROLL
    for (int j = 0; j < S::kWarpN / 8; ++j) {
      const int64_t column = p.column + first_column + j * 8 + lane % 4 * 2;
      if (column >= g.n) continue;
      const bool both = column + 1 < g.n;
      const float x = with_bias(g, p, row, column, sums[i][j][2 * half]);
      const float y = both ? with_bias(g, p, row, column + 1, sums[i][j][2 * half + 1]) : 0;
      const int64_t at = p.c + row * g.c_step + column;
      if (g.c_dtype == DType::f32) {
        put_pair(static_cast<float*>(g.c) + at, x, y, both, wide_c, g.accumulate);
      } else {
        put_pair(static_cast<T*>(g.c) + at, x, y, both, wide_c, g.accumulate);
      }
    }
  }
  if (!g.epilogue) return;
  constexpr int kAcross = S::kWarpN / 8;
  GPU_ROLL
  for (int i = 0; i < S::kWarpM / 8 * kAcross * 2; ++i) {
    const int64_t row = p.row + first_row + i / 2 / kAcross * 8 + lane / 4;
    const int64_t column = p.column + first_column + i / 2 % kAcross * 8 + lane % 4 * 2 + i % 2;
    if (row >= g.m || column >= g.n) continue;
    const int64_t at = p.c + row * g.c_step + column;
    g.c_dtype == DType::f32 ? finish<float>(g.epilogue, at) : finish<T>(g.epilogue, at);
  }
}

// A thread computes 8 rows and 4 columns of a block of 64 x 64.
constexpr int kBlock32 = 64, kDepth32 = 16, kThreads32 = 128;

// The elements that this thread copies of an operand tile [64 16], with strides `across` for rows and `along` for k:
// adjacent threads copy adjacent memory.
struct Part32 {
  const float* from;
  int64_t across, along, size;  // size: number of rows
  static constexpr int kEach = kBlock32 * kDepth32 / kThreads32;

  __device__ int row_of(int i) const {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads32;
    return along == 1 ? at / kDepth32 : at % kBlock32;
  }
  __device__ int k_of(int i) const {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads32;
    return along == 1 ? at % kDepth32 : at / kBlock32;
  }
  __device__ void load(float (&x)[kEach], int64_t first, int64_t k) const {
    GPU_UNROLL
    for (int i = 0; i < kEach; ++i)
      x[i] = row_of(i) < size && first + k_of(i) < k ? from[row_of(i) * across + (first + k_of(i)) * along] : 0;
  }
  __device__ void store(const float (&x)[kEach], float (*to)[kBlock32 + 4]) const {
    GPU_UNROLL
    for (int i = 0; i < kEach; ++i) to[k_of(i)][row_of(i)] = x[i];
  }
};

__global__ void __launch_bounds__(kThreads32) multiply_32(Gemm g) {
  alignas(16) __shared__ float of_a[2][kDepth32][kBlock32 + 4];
  alignas(16) __shared__ float of_b[2][kDepth32][kBlock32 + 4];
  const Place p = place_of(g, kBlock32, kBlock32);
  const int64_t a_row = g.a.transposed ? 1 : g.a.step, b_column = g.b.transposed ? g.b.step : 1;
  const Part32 a = {static_cast<const float*>(g.a.data) + p.a + p.row * a_row, a_row, g.a.transposed ? g.a.step : 1,
                    g.m - p.row};
  const Part32 b = {static_cast<const float*>(g.b.data) + p.b + p.column * b_column, b_column,
                    g.b.transposed ? 1 : g.b.step, g.n - p.column};
  const int row = static_cast<int>(threadIdx.x) / 16 * 8, column = static_cast<int>(threadIdx.x) % 16 * 4;
  float sums[8][4] = {}, next_a[Part32::kEach], next_b[Part32::kEach];
  a.load(next_a, 0, g.k), b.load(next_b, 0, g.k);
  int stage = 0;
  for (int64_t first = 0; first < g.k; first += kDepth32, stage ^= 1) {
    a.store(next_a, of_a[stage]), b.store(next_b, of_b[stage]);
    __syncthreads();
    if (first + kDepth32 < g.k) a.load(next_a, first + kDepth32, g.k), b.load(next_b, first + kDepth32, g.k);
    GPU_UNROLL
    for (int k = 0; k < kDepth32; ++k) {
      const auto x = *reinterpret_cast<const Vec<float, 4>*>(&of_a[stage][k][row]);
      const auto z = *reinterpret_cast<const Vec<float, 4>*>(&of_a[stage][k][row + 4]);
      const auto y = *reinterpret_cast<const Vec<float, 4>*>(&of_b[stage][k][column]);
      GPU_UNROLL
      for (int i = 0; i < 8; ++i) GPU_UNROLL
      for (int j = 0; j < 4; ++j) sums[i][j] += (i < 4 ? x[i % 4] : z[i % 4]) * y[j];
    }
  }
  GPU_UNROLL
  for (int i = 0; i < 8; ++i) GPU_UNROLL
  for (int j = 0; j < 4; ++j) {
    const int64_t r = p.row + row + i, c = p.column + column + j;
    if (r < g.m && c < g.n)
      put(static_cast<float*>(g.c) + p.c + r * g.c_step + c, with_bias(g, p, r, c, sums[i][j]), g.accumulate);
  }
  if (!g.epilogue) return;
  GPU_ROLL
  for (int i = 0; i < 8 * 4; ++i) {
    const int64_t r = p.row + row + i / 4, c = p.column + column + i % 4;
    if (r < g.m && c < g.n) finish<float>(g.epilogue, p.c + r * g.c_step + c);
  }
}

// One element per thread of a block of 16 x 16: devices are slow in fp64, and larger products use the library.
constexpr int kBlock64 = 16;

__global__ void __launch_bounds__(kBlock64* kBlock64) multiply_64(Gemm g) {
  __shared__ double of_a[kBlock64][kBlock64 + 1], of_b[kBlock64][kBlock64 + 1];  // [m k], [k n]
  const Place p = place_of(g, kBlock64, kBlock64);
  const double* const a = static_cast<const double*>(g.a.data) + p.a;
  const double* const b = static_cast<const double*>(g.b.data) + p.b;
  const int i = static_cast<int>(threadIdx.x) / kBlock64, j = static_cast<int>(threadIdx.x) % kBlock64;
  double sum = 0;
  for (int64_t first = 0; first < g.k; first += kBlock64) {
    // In storage order: adjacent threads copy adjacent memory.
    const int64_t a_row = g.a.transposed ? first + i : p.row + i, a_column = g.a.transposed ? p.row + j : first + j;
    const int64_t b_row = g.b.transposed ? p.column + i : first + i,
                  b_column = g.b.transposed ? first + j : p.column + j;
    const bool in_a = a_row < (g.a.transposed ? g.k : g.m) && a_column < (g.a.transposed ? g.m : g.k);
    const bool in_b = b_row < (g.b.transposed ? g.n : g.k) && b_column < (g.b.transposed ? g.k : g.n);
    (g.a.transposed ? of_a[j][i] : of_a[i][j]) = in_a ? a[a_row * g.a.step + a_column] : 0;
    (g.b.transposed ? of_b[j][i] : of_b[i][j]) = in_b ? b[b_row * g.b.step + b_column] : 0;
    __syncthreads();
    for (int k = 0; k < kBlock64; ++k) sum += of_a[i][k] * of_b[k][j];
    __syncthreads();
  }
  const int64_t row = p.row + i, column = p.column + j;
  if (row >= g.m || column >= g.n) return;
  if (g.bias != nullptr) sum += static_cast<const double*>(g.bias)[p.bias + row * g.bias_row + column * g.bias_column];
  double* const c = static_cast<double*>(g.c) + p.c + row * g.c_step + column;
  *c = g.accumulate ? *c + sum : sum;
}

int64_t blocks_of(const Gemm& g, int rows, int columns) {
  return (g.m + rows - 1) / rows * ((g.n + columns - 1) / columns) * g.products();
}

template <typename T, bool kAcrossA, bool kAcrossB, int kM, int kN, int kStages>
void launch_16(const Gemm& g, device::Stream& stream) {
  using S = Shape16<kM, kN>;
  constexpr size_t kBytes = sizeof(T) * kStages * (kPart<kAcrossA, kM> + kPart<kAcrossB, kN>);
  const int64_t blocks = blocks_of(g, kM, kN), c_bytes = 2 * tensor::size_of(g.c_dtype);
  launch(stream, dim3(static_cast<unsigned>(blocks)), dim3(S::kThreads), kBytes,
         multiply_16<T, kAcrossA, kAcrossB, kM, kN, kStages>, g, begins_at(g, g.a.data, 16, g.a.step, &GemmBatch::a, 8),
         begins_at(g, g.b.data, 16, g.b.step, &GemmBatch::b, 8),
         begins_at(g, g.c, c_bytes, g.c_step, &GemmBatch::c, 2));
}

template <typename T, bool kAcrossA, bool kAcrossB>
void choose_16(const Gemm& g, device::Stream& stream) {
  constexpr int64_t kProcessors = 100;  // approximate: with fewer blocks, smaller ones use more multiprocessors
  constexpr int kStages = 4;
  constexpr size_t kBytes = sizeof(T) * kStages * (kPart<kAcrossA, 128> + kPart<kAcrossB, 128>);
  if (blocks_of(g, 128, 128) < kProcessors) return launch_16<T, kAcrossA, kAcrossB, 64, 64, kStages>(g, stream);
  if constexpr (kBytes <= kMostShared)
    if (has_shared(kBytes)) return launch_16<T, kAcrossA, kAcrossB, 128, 128, kStages>(g, stream);
  if constexpr (kBytes > kLeastShared) launch_16<T, kAcrossA, kAcrossB, 128, 128, kStages - 1>(g, stream);
}

void own_gemm(const Gemm& g, device::Stream& stream) {
  const int side = g.dtype == DType::f64 ? kBlock64 : kBlock32;  // of the smallest blocks
  base::require(blocks_of(g, side, side) < (int64_t{1} << 31), "gemm", "a product of {} x {}, {} times", g.m, g.n,
                g.products());
  if (g.dtype == DType::f64) {
    base::require(g.bias == nullptr || g.bias_dtype == DType::f64, "gemm", "a product of fp64 with a bias of {}",
                  name_of(g.bias_dtype));
    return launch(stream, dim3(static_cast<unsigned>(blocks_of(g, side, side))), dim3(kBlock64 * kBlock64), 0,
                  multiply_64, g);
  }
  dispatch("a product", g.dtype, [&]<typename T>(T) {
    if constexpr (sizeof(T) == 4) {
      launch(stream, dim3(static_cast<unsigned>(blocks_of(g, kBlock32, kBlock32))), dim3(kThreads32), 0, multiply_32,
             g);
    } else if (g.a.transposed) {
      g.b.transposed ? choose_16<T, true, false>(g, stream) : choose_16<T, true, true>(g, stream);
    } else {
      g.b.transposed ? choose_16<T, false, false>(g, stream) : choose_16<T, false, true>(g, stream);
    }
  });
}

}  // namespace

#if defined(__CUDACC__)
LibraryGemm library_gemm = cublaslt_gemm;
#else
LibraryGemm library_gemm = nullptr;
#endif

bool gemm_with(Gemm g, const void* added, device::Stream& stream) {
  g.added = added;
  return library_gemm != nullptr && g.m > 0 && g.n > 0 && !g.accumulate && !g.epilogue && library_gemm(g, stream);
}

bool gemm(const Gemm& g, device::Stream& stream) {
  base::require(g.c_dtype == g.dtype || (g.c_dtype == DType::f32 && g.dtype != DType::f64), "gemm",
                "a product of {} in {}", name_of(g.dtype), name_of(g.c_dtype));
  if (g.m == 0 || g.n == 0 || g.products() == 0) return true;
  if (thin_gemms({&g, 1}, stream)) return true;
  if (library_gemm != nullptr) {
    if (library_gemm(g, stream)) return true;
    Gemm alone = g;
    alone.epilogue = {};
    if (g.epilogue && library_gemm(alone, stream)) return false;
  }
  own_gemm(g, stream);
  return !g.epilogue || g.dtype != DType::f64;
}

}  // namespace kintsugi::KINTSUGI_GPU

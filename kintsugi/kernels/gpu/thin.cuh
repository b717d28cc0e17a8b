// Products of few rows, c [m n] = a [m k] b, which take as long as reading b: every element of b is read once, 16 bytes
// at a time and many loads at once, and multiplied with all rows of a. A block has some columns of c and all of k, so
// that nothing is joined between blocks; sums are taken in an order that depends on the sizes alone.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/gpu/gemm_result.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kTogether = 8;     // loads of b that a thread has under way
constexpr int kMostLoads = 256;  // of b by a thread: more are better done by a library, which cuts k

template <typename C>
__device__ __forceinline__ void put_result(const Gemm& g, int64_t row, int64_t column, float sum) {
  if (g.bias != nullptr) sum += element_of(g.bias, g.bias_dtype, row * g.bias_row + column * g.bias_column);
  const int64_t at = row * g.c_step + column;
  put(static_cast<C*>(g.c) + at, sum, g.accumulate);
  if (g.epilogue) finish<C>(g.epilogue, at);
}
template <typename T>
__device__ __forceinline__ void put_any_result(const Gemm& g, int64_t row, int64_t column, float sum) {
  g.c_dtype == DType::f32 ? put_result<float>(g, row, column, sum) : put_result<T>(g, row, column, sum);
}

template <typename T>
__device__ __forceinline__ float of_a(const Gemm& g, int64_t row, int64_t k) {
  return widen(static_cast<const T*>(g.a.data)[row * g.a.step + k]);
}

// b is stored [k n]. Of a block, kAcross threads side by side have N columns each, those behind them other rows of b.
template <int kM>
constexpr int kMostThin = kM == 1   ? 1024
                          : kM == 2 ? 512
                                    : 256;
template <typename T, int kM, int kAcross>
__global__ void __launch_bounds__(kMostThin<kM>, 1) thin_columns(Gemm g) {
  constexpr int N = kWide<T>, kColumns = kAcross * N;
  __shared__ float parts[kMostThin<kM> / 32][kM][kColumns];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kColumns, column = begin + thread % kAcross * N;
  const int groups = static_cast<int>(blockDim.x) / kAcross, group = thread / kAcross;
  const T* const b = static_cast<const T*>(g.b.data) + column;
  const bool there = column < g.n;
  Sums<kM* N> sums = {};
  for (int64_t k = group; k < g.k; k += static_cast<int64_t>(groups) * kTogether) {
    Packed<T, N> some[kTogether];
    float x[kTogether][kM];
    GPU_UNROLL
    for (int t = 0; t < kTogether; ++t) {
      const int64_t at = k + static_cast<int64_t>(t) * groups;
      some[t] = {};
      if (there && at < g.k) some[t].load(b + at * g.b.step);
      GPU_UNROLL
      for (int r = 0; r < kM; ++r) x[t][r] = at < g.k && r < g.m ? of_a<T>(g, r, at) : 0;
    }
    GPU_UNROLL
    for (int t = 0; t < kTogether; ++t) GPU_UNROLL
    for (int r = 0; r < kM; ++r) GPU_UNROLL
    for (int i = 0; i < N; ++i) sums.at[r * N + i] += x[t][r] * some[t][i];
  }
  for (int mask = kAcross; mask < 32; mask *= 2) sums = sums + shuffle_xor(sums, mask);
  if (lane < kAcross) {
    GPU_UNROLL
    for (int r = 0; r < kM; ++r) GPU_UNROLL
    for (int i = 0; i < N; ++i) parts[warp][r][lane * N + i] = sums.at[r * N + i];
  }
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int at = thread; at < kM * kColumns; at += static_cast<int>(blockDim.x)) {
    const int row = at / kColumns, c = at % kColumns;
    if (row >= g.m || begin + c >= g.n) continue;
    float sum = 0;
    for (int w = 0; w < warps; ++w) sum += parts[w][row][c];
    put_any_result<T>(g, row, begin + c, sum);
  }
}

// b is stored [n k]: 32 lanes for each column of c.
constexpr int kThreads = 256;
template <typename T, int kM>
__global__ void __launch_bounds__(kThreads, 4) thin_rows(Gemm g) {
  constexpr int N = kWide<T>, kBatch = kM <= 2 ? kTogether / 2 : kTogether / 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const T* const b = static_cast<const T*>(g.b.data) + column * g.b.step;
  const T* const a = static_cast<const T*>(g.a.data);
  Sums<kM> sums = {};
  for (int64_t k = lane * N; k < g.k; k += 32 * N * kBatch) {
    Packed<T, N> some[kBatch];
    GPU_UNROLL
    for (int t = 0; t < kBatch; ++t) {
      some[t] = {};
      if (column < g.n && k + t * 32 * N < g.k) some[t].load(b + k + t * 32 * N);
    }
    GPU_UNROLL
    for (int t = 0; t < kBatch; ++t) GPU_UNROLL
    for (int r = 0; r < kM; ++r) {
      Packed<T, N> x = {};
      if (r < g.m && k + t * 32 * N < g.k) x.load(a + r * g.a.step + k + t * 32 * N);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) sums.at[r] += x[i] * some[t][i];
    }
  }
  sums = lanes_sum(sums);
  if (column >= g.n) return;
  GPU_UNROLL
  for (int r = 0; r < kM; ++r)
    if (lane == r && r < g.m) put_any_result<T>(g, r, column, sums.at[r]);
}

// As many threads as keep the memory of a large device busy with so few blocks, but no more than there is work for.
// False if there are too few.
template <typename T, int kM, int kAcross>
bool launch_columns(const Gemm& g, int threads, device::Stream& stream) {
  constexpr int kColumns = kAcross * kWide<T>;
  threads = std::min(threads, kMostThin<kM>);
  while (threads > 64 && threads / kAcross >= 2 * g.k) threads /= 2;
  if (g.k * kAcross > int64_t{kMostLoads} * threads) return false;
  launch(stream, dim3(static_cast<unsigned>((g.n + kColumns - 1) / kColumns)), dim3(static_cast<unsigned>(threads)), 0,
         thin_columns<T, kM, kAcross>, g);
  return true;
}

template <typename T, int kM>
bool launch_thin(const Gemm& g, device::Stream& stream) {
  const bool wide_b = begins_at(g, g.b.data, 16, g.b.step, &GemmBatch::b, kWide<T>);
  if (!g.b.transposed) {
    if (g.n % kWide<T> != 0 || !wide_b) return false;
    const int64_t runs = (g.n + kWide<T> - 1) / kWide<T>;  // of 16 bytes, in a row of b
    if (runs <= 4 * kProcessors) return launch_columns<T, kM, 4>(g, 1024, stream);
    if (runs <= 8 * kProcessors) return launch_columns<T, kM, 4>(g, 512, stream);
    return launch_columns<T, kM, 8>(g, runs <= 16 * kProcessors ? 512 : 256, stream);  // whole lines of memory
  }
  if (g.k > int64_t{kMostLoads} * 32 * kWide<T>) return false;
  const bool wide_a = begins_at(g, g.a.data, 16, g.m == 1 ? 0 : g.a.step, &GemmBatch::a, kWide<T>);
  if (g.k % kWide<T> != 0 || !wide_a || !wide_b) return false;
  const int64_t columns = kThreads / 32;
  launch(stream, dim3(static_cast<unsigned>((g.n + columns - 1) / columns)), dim3(kThreads), 0, thin_rows<T, kM>, g);
  return true;
}

}  // namespace

bool thin_gemm(const Gemm& g, device::Stream& stream) {
  if (g.m > kThinRows || g.k == 0 || g.num_batch > 0 || g.a.transposed || g.dtype == DType::f64) return false;
  bool done = false;
  dispatch("a product", g.dtype, [&]<typename T>(T) {
    done = g.m == 1   ? launch_thin<T, 1>(g, stream)
           : g.m == 2 ? launch_thin<T, 2>(g, stream)
                      : launch_thin<T, 4>(g, stream);
  });
  return done;
}

}  // namespace kintsugi::KINTSUGI_GPU

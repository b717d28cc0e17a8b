// Products of few rows, c [m n] = a [m k] b, which take as long as reading b: every element of b is read once, 16 bytes
// at a time and many loads at once, and multiplied with all rows of a. A block has some columns of c and all of k.
// Where there would be few blocks with much to read, the blocks of a cluster have a part of k each, and the first adds
// up. Sums are taken in an order that depends on the sizes alone, and on whether the device has clusters.
//
// Weights are read before the kernel that makes a has ended (device/gpu.h, launch_overlapping).
#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/gpu/gemm_result.h"
#include "kintsugi/kernels/gpu/norm_within.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kTogether = 4;       // loads of b that a thread has under way
constexpr int kMostLoads = 256;    // of b by a thread: more are better done by a library, which cuts k
constexpr int kMostAcross = 8;     // threads of a block that are side by side
constexpr unsigned kMostCuts = 8;  // of k: blocks of a cluster

// An element as it is in memory, 0 without any: nothing waits for it before it is widened.
__device__ __forceinline__ uint32_t bits_at(const void* x, DType dtype, int64_t i) {
  if (x == nullptr) return 0;
  return dtype == DType::f32 ? static_cast<const uint32_t*>(x)[i] : static_cast<const uint16_t*>(x)[i];
}
__device__ __forceinline__ float widen_bits(uint32_t bits, DType dtype) {
  const auto half = static_cast<uint16_t>(bits);
  return dtype == DType::f32 ? std::bit_cast<float>(bits) : dtype == DType::bf16 ? widen(bf16{half}) : widen(f16{half});
}
// What is added to a sum: its bias, and what c holds where it is kept.
struct Added {
  uint32_t bias, kept;
};
__device__ __forceinline__ uint32_t bias_at(const Gemm& g, int64_t row, int64_t column) {
  return bits_at(g.bias, g.bias_dtype, row * g.bias_row + column * g.bias_column);
}
__device__ __forceinline__ uint32_t kept_at(const Gemm& g, int64_t row, int64_t column) {
  return bits_at(g.accumulate ? g.c : nullptr, g.c_dtype, row * g.c_step + column);
}

template <typename C>
__device__ __forceinline__ void put_result(const Gemm& g, int64_t at, float sum) {
  static_cast<C*>(g.c)[at] = narrow<C>(sum);
  if (g.epilogue) finish<C>(g.epilogue, at);
}
template <typename T>
__device__ __forceinline__ void put_any_result(const Gemm& g, int64_t row, int64_t column, float sum, Added added) {
  const int64_t at = row * g.c_step + column;
  sum = sum + widen_bits(added.bias, g.bias_dtype) + widen_bits(added.kept, g.c_dtype);
  g.c_dtype == DType::f32 ? put_result<float>(g, at, sum) : put_result<T>(g, at, sum);
}

// Products that read the same a, of m, k and types that are the same. Each has blocks of its own.
struct Products {
  Gemm at[kMostProducts];
  unsigned end[kMostProducts];  // blocks of it and of those before it
  // As powers of two: threads of a block that are side by side, and blocks of a cluster that share columns.
  int across[kMostProducts], cuts[kMostProducts];
  unsigned cluster;             // blocks of it; 1: there are none
  unsigned norm_at, slices_at;  // in shared memory, in bytes
  bool early;                   // b and the biases may be read before the kernel before has ended
  NormWithin norm;              // which makes a, where the kernel has one
};

// b is stored [k n]. Of a block, `across` threads side by side have N columns each, those behind them other rows of b.
// A thread copies what it reads to places of its own in shared memory, kAhead loads ahead of where it multiplies. The
// next kernel begins when all has been asked for: what it asks for then is on its way while this one ends and that one
// waits.
constexpr int kAhead = kCopiesBeside ? 10 : 2;
template <int kM>
constexpr int kMostThin = kM <= 2 ? 512 : 256;
template <typename T, int kM, bool kNorm>
__global__ void __launch_bounds__(kMostThin<kM>, kM == 1 ? 2 : 1) thin_columns(Products p) {
  constexpr int N = kWide<T>, kWarps = kMostThin<kM> / 32;
  GPU_DYNAMIC_SHARED(unsigned char, shared);
  __shared__ float parts[kWarps][kM * kMostAcross * N];
  int product = 0;
  unsigned before = 0;
  GPU_UNROLL
  for (int i = 0; i + 1 < static_cast<int>(kMostProducts); ++i)
    if (blockIdx.x >= p.end[i]) product = i + 1, before = p.end[i];
  const Gemm& g = p.at[product];  // to which no function within this one refers: compilers for AMD would copy it
  const int side = p.across[product], across = 1 << side, columns = across * N, shared_by = p.cuts[product];
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const int block = static_cast<int>(blockIdx.x - before), cuts = 1 << shared_by, cut = block & (cuts - 1);
  const int width = static_cast<int>(g.n), begin = (block >> shared_by) * columns;
  const int column = begin + (thread & (across - 1)) * N, row = thread >> side, groups = threads >> side;
  const int of_cut = (static_cast<int>(g.k) + cuts - 1) >> shared_by;
  // Of k, where what this thread has ends; nothing, where b has no columns for it.
  const int depth = column < width ? std::min(static_cast<int>(g.k), (cut + 1) * of_cut) : 0;
  int k = cut * of_cut + row;  // that this thread multiplies next
  const T* from = static_cast<const T*>(g.b.data) + k * g.b.step + column;
  const int64_t stride = groups * g.b.step;
  unsigned char* const ring = shared + 16 * thread;
  const auto load = [&](int t, int of) {
    if (of < depth) copy_async_16(ring + 16 * t * threads, from);
    copy_async_commit();
    from += stride;
  };

  if (!p.early) wait_for_kernels_before();
  GPU_UNROLL
  for (int t = 0; t < kAhead; ++t) load(t, k + t * groups);
  T* const made = reinterpret_cast<T*>(shared + p.norm_at);
  float* const weights = reinterpret_cast<float*>(made + kM * p.norm.width);
  if constexpr (kNorm) p.norm.fetch_weights_to(weights);
  // Of c, where this thread puts a sum.
  const int own_row = (thread / N) >> side, own_column = begin + (thread & (columns - 1));
  const bool owns = cut == 0 && own_row < kM && own_row < g.m && own_column < width;
  Added added = {};
  if (owns) added.bias = bias_at(g, own_row, own_column);
  if (p.cluster > 1) cluster_begins();
  if (p.early) wait_for_kernels_before();
  if (k + kAhead * groups >= depth) let_next_begin();
  if (owns) added.kept = kept_at(g, own_row, own_column);
  if constexpr (kNorm) normalize_within<T, kM>(p.norm, made, weights);
  const T* x_from = (kNorm ? made : static_cast<const T*>(g.a.data)) + k;
  const int x_step = kNorm ? p.norm.width : static_cast<int>(g.a.step), rows = static_cast<int>(g.m);

  Sums<kM* N> sums = {};
  T x[kAhead][kM] = {};
  const auto load_x = [&](int t, int of) {
    GPU_UNROLL
    for (int r = 0; r < kM; ++r)
      if (of < depth && r < rows) x[t][r] = x_from[r * x_step];
    x_from += groups;
  };
  GPU_UNROLL
  for (int t = 0; t < kAhead; ++t) load_x(t, k + t * groups);
  while (k < depth) {
    GPU_UNROLL
    for (int t = 0; t < kAhead; ++t) {
      copy_async_wait<kAhead - 1>();
      if (k < depth) {
        Packed<T, N> some;
        some.load(reinterpret_cast<const T*>(ring + 16 * t * threads));
        GPU_UNROLL
        for (int r = 0; r < kM; ++r) GPU_UNROLL
        for (int i = 0; i < N; ++i) sums.at[r * N + i] += widen(x[t][r]) * some[i];
      }
      const int next = k + kAhead * groups;
      load(t, next), load_x(t, next);
      if (next + groups >= depth) let_next_begin();
      k += groups;
    }
  }
  for (int mask = across; mask < 32; mask *= 2) sums = sums + shuffle_xor(sums, mask);
  if (thread % 32 < across) {
    GPU_UNROLL
    for (int r = 0; r < kM; ++r) GPU_UNROLL
    for (int i = 0; i < N; ++i) parts[thread / 32][r * columns + thread % 32 * N + i] = sums.at[r * N + i];
  }
  __syncthreads();
  const int warps = threads / 32, count = kM * columns;
  float* slices = nullptr;  // [cuts count], in the first block of them
  if (p.cluster > 1) slices = reinterpret_cast<float*>(shared + p.slices_at);
  for (int at = thread; at < count; at += threads) {
    float sum = 0;
    GPU_UNROLL
    for (int w = 0; w < kWarps; ++w) sum += w < warps ? parts[w][at] : 0;
    parts[0][at] = sum;
    if (p.cluster > 1)
      of_block_in_cluster(slices, (blockIdx.x & (p.cluster - 1)) - static_cast<unsigned>(cut))[cut * count + at] = sum;
  }
  if (p.cluster > 1) {
    cluster_barrier();
    if (cut > 0) return;
  }
  for (int at = thread; at < count; at += threads) {
    const int row = at == thread ? own_row : at / columns, to = at == thread ? own_column : begin + at % columns;
    if (row >= g.m || to >= width) continue;
    float sum = p.cluster > 1 ? 0 : parts[0][at];
    if (p.cluster > 1)
      for (int c = 0; c < cuts; ++c) sum += slices[c * count + at];
    if (at != thread) added = {bias_at(g, row, to), kept_at(g, row, to)};
    put_any_result<T>(g, row, to, sum, added);
  }
}

// b is stored [n k]: 32 lanes for each column of c.
constexpr int kThreads = 256;
template <typename T, int kM>
__global__ void __launch_bounds__(kThreads, kM == 2 ? 3 : 4) thin_rows(Gemm g, bool early) {
  constexpr int N = kWide<T>, kBatch = kM <= 2 ? kTogether : kTogether / 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const T* const b = static_cast<const T*>(g.b.data) + column * g.b.step;
  const T* const a = static_cast<const T*>(g.a.data);
  const int depth = static_cast<int>(g.k);
  Packed<T, N> some[kBatch];
  const auto load = [&](int k) {
    GPU_UNROLL
    for (int t = 0; t < kBatch; ++t) {
      some[t] = {};
      if (column < g.n && k + t * 32 * N < depth) some[t].load(b + k + t * 32 * N);
    }
  };
  if (!early) wait_for_kernels_before();
  int k = lane * N;
  load(k);
  if (early) wait_for_kernels_before();
  let_next_begin();
  Sums<kM> sums = {};
  while (true) {
    GPU_UNROLL
    for (int t = 0; t < kBatch; ++t) GPU_UNROLL
    for (int r = 0; r < kM; ++r) {
      Packed<T, N> x = {};
      if (r < g.m && k + t * 32 * N < depth) x.load(a + r * g.a.step + k + t * 32 * N);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) sums.at[r] += x[i] * some[t][i];
    }
    k += 32 * N * kBatch;
    if (k >= depth) break;
    load(k);
  }
  sums = lanes_sum(sums);
  if (column >= g.n) return;
  GPU_UNROLL
  for (int r = 0; r < kM; ++r)
    if (lane == r && r < g.m)
      put_any_result<T>(g, r, column, sums.at[r], {bias_at(g, r, column), kept_at(g, r, column)});
}

// What a product reads that the kernel before it seldom makes, and all that it writes.
device::Stream::Bytes bytes_of_b(const Gemm& g) {
  const int64_t rows = g.b.transposed ? g.n : g.k, columns = g.b.transposed ? g.k : g.n;
  return bytes_at(g.b.data, ((rows - 1) * g.b.step + columns) * tensor::size_of(g.dtype));
}
device::Stream::Bytes bytes_of_bias(const Gemm& g) {
  return bytes_at(g.bias, ((g.m - 1) * g.bias_row + (g.n - 1) * g.bias_column + 1) * tensor::size_of(g.bias_dtype));
}
device::Stream::Bytes bytes_of_weights(const AnyData& x, int64_t count) {
  return bytes_at(x.data, x.data == nullptr ? 0 : count * tensor::size_of(x.dtype));
}
void add_written(const Gemm& g, std::vector<device::Stream::Bytes>& written) {
  const int64_t bytes = ((g.m - 1) * g.c_step + g.n) * tensor::size_of(g.c_dtype);
  for (const void* at :
       {static_cast<const void*>(g.c), static_cast<const void*>(g.epilogue.x), static_cast<const void*>(g.epilogue.y)})
    if (at != nullptr) written.push_back(bytes_at(at, bytes));
}

// The threads of a block, those side by side, and the blocks that share columns: the shorter the rows of b, the fewer
// are side by side, so that there are blocks for most processors of a large device, but runs of 64 bytes, as memory has
// them, unless there would be very few. Blocks share where they are few and have much to read. None if a thread had too
// many loads.
struct Block {
  int threads;
  unsigned across, cuts;
};
template <int kM>
std::optional<Block> block_of(const Gemm& g, int64_t wide, bool clusters) {
  constexpr int64_t kEnough = kProcessors * 3 / 4;  // blocks
  constexpr int64_t kMuch = 16;                     // loads of a thread
  const int64_t runs = g.n / wide;                  // of 16 bytes, in a row of b
  Block b = {std::min(g.k >= 1024 ? 512 : 256, kMostThin<kM>), 8, 1};
  if (runs < 8 * kEnough) b.across = 4;
  if (runs <= kProcessors) b.across = 2;
  while (b.threads > 64 && b.threads / 8 >= 2 * g.k) b.threads /= 2;
  const int64_t loads = (g.k * b.across + b.threads - 1) / b.threads;
  if (loads > kMostLoads) return std::nullopt;
  if (clusters)
    while (b.cuts < kMostCuts && runs * b.cuts < b.across * kEnough && loads > kMuch * b.cuts) b.cuts *= 2;
  return b;
}

template <typename T, int kM>
bool launch_columns(std::span<const Gemm> all, const NormWithin* norm, device::Stream& stream) {
  constexpr size_t kOfItsOwn = 10 * 1024;  // shared memory of a size known when it is compiled
  const auto kernel = norm == nullptr ? thin_columns<T, kM, false> : thin_columns<T, kM, true>;
  Products p = {};
  p.early = true;
  if (norm != nullptr) {
    p.norm = *norm;
    p.early =
        unwritten(stream, {bytes_of_weights(norm->gamma, norm->width), bytes_of_weights(norm->beta, norm->width)});
  }
  p.cluster = 1;
  int threads = 0, most_columns = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Gemm& g = all[i];
    if (g.n % kWide<T> != 0 || !begins_at(g, g.b.data, 16, g.b.step, &GemmBatch::b, kWide<T>)) return false;
    const std::optional<Block> b = block_of<kM>(g, kWide<T>, has_clusters(kernel));
    if (!b || (norm != nullptr && !norm->team.by_lanes && norm->team.threads > b->threads)) return false;
    p.at[i] = g, p.across[i] = std::countr_zero(b->across), p.cuts[i] = std::countr_zero(b->cuts);
    p.cluster = std::max(p.cluster, b->cuts);
    threads = b->threads, most_columns = std::max(most_columns, static_cast<int>(b->across) * kWide<T>);
  }
  unsigned blocks = 0;
  std::vector<device::Stream::Bytes> written;
  for (size_t i = 0; i < kMostProducts; ++i) {
    p.end[i] = ~0u;
    if (i >= all.size()) continue;
    const Gemm& g = all[i];
    // Whole clusters: the last blocks may have no columns.
    const int64_t columns = int64_t{kWide<T>} << p.across[i], own = quotient_up(g.n, columns) << p.cuts[i];
    blocks += static_cast<unsigned>(quotient_up(own, p.cluster)) * p.cluster, p.end[i] = blocks;
    p.early &= unwritten(stream, {bytes_of_b(g), bytes_of_bias(g)});
    add_written(g, written);
  }
  p.norm_at = static_cast<unsigned>(kAhead * 16 * threads);
  size_t shared = p.norm_at;
  if (norm != nullptr) shared += norm->shared_bytes(kM, sizeof(T));
  shared = static_cast<size_t>(quotient_up(static_cast<int64_t>(shared), 16)) * 16;
  p.slices_at = static_cast<unsigned>(shared);
  if (p.cluster > 1) shared += p.cluster * sizeof(float) * static_cast<size_t>(kM * most_columns);
  if (shared > most_shared() - kOfItsOwn) return false;
  launch_overlapping(stream, {dim3(blocks), p.cluster}, dim3(static_cast<unsigned>(threads)), shared,
                     std::move(written), kernel, p);
  return true;
}

template <typename T, int kM>
bool launch_rows(const Gemm& g, device::Stream& stream) {
  if (g.k > int64_t{kMostLoads} * 32 * kWide<T> || g.k % kWide<T> != 0) return false;
  if (!begins_at(g, g.a.data, 16, g.m == 1 ? 0 : g.a.step, &GemmBatch::a, kWide<T>) ||
      !begins_at(g, g.b.data, 16, g.b.step, &GemmBatch::b, kWide<T>))
    return false;
  std::vector<device::Stream::Bytes> written;
  add_written(g, written);
  const int64_t columns = kThreads / 32;
  launch_overlapping(stream, dim3(static_cast<unsigned>((g.n + columns - 1) / columns)), dim3(kThreads), 0,
                     std::move(written), thin_rows<T, kM>, g, unwritten(stream, {bytes_of_b(g)}));
  return true;
}

bool is_thin(const Gemm& g) {
  return g.m <= kThinRows && g.k > 0 && g.num_batch == 0 && !g.a.transposed && g.dtype != DType::f64;
}

}  // namespace

bool thin_gemms(std::span<const Gemm> all, device::Stream& stream, const NormWithin* norm) {
  const Gemm& g = all.front();
  if (all.size() > kMostProducts) return false;
  for (const Gemm& one : all) {
    if (!is_thin(one)) return false;
    if ((all.size() > 1 || norm != nullptr) &&
        (one.b.transposed || one.m != g.m || one.k != g.k || one.dtype != g.dtype))
      return false;
  }
  bool done = false;
  dispatch("a product", g.dtype, [&]<typename T>(T) {
    const auto launch = [&]<int kM>(std::integral_constant<int, kM>) {
      done = g.b.transposed ? launch_rows<T, kM>(g, stream) : launch_columns<T, kM>(all, norm, stream);
    };
    g.m == 1   ? launch(std::integral_constant<int, 1>())
    : g.m == 2 ? launch(std::integral_constant<int, 2>())
               : launch(std::integral_constant<int, 4>());
  });
  return done;
}

}  // namespace kintsugi::KINTSUGI_GPU

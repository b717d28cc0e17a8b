// Matrix products with few rows, c [m n] = a [m k] b [k n], bound by reading b: every element of b is read once, 16
// bytes at a time with many loads in flight, and multiplied with all rows of a. 16-bit types use tensor cores
// (thin_tiles.h) on devices with clusters and large shared memory; otherwise FMAs (thin_columns.h). The order of sums
// depends only on the sizes of the products of a launch, and on which of the two is used.
//
// Weights are read before the kernel that produces a has finished (device/gpu.h, launch_overlapping).
#include <span>

#include "kintsugi/kernels/gpu/thin_columns.h"
#include "kintsugi/kernels/gpu/thin_tiles.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kTogether = 4;     // loads of b in flight per thread of thin_rows
constexpr int kMostLoads = 256;  // of b per thread: beyond that use a library, which splits k

// b is stored [n k]: one warp per column of c.
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

constexpr size_t kOfItsOwn = 10 * 1024;  // bound on static shared memory

// Launches several products by one kernel; false if a block would need too much shared memory. `of_each`: number of
// blocks of a product.
template <typename F>
bool launch_products(Products& p, std::span<const Gemm> all, const NormWithin* norm, device::Stream& stream,
                     unsigned cluster, int threads, size_t shared, void (*kernel)(Products), const F& of_each) {
  if (shared > most_shared() - kOfItsOwn) return false;
  p.early = true;
  if (norm != nullptr) {
    p.norm = *norm;
    p.early =
        unwritten(stream, {bytes_of_weights(norm->gamma, norm->width), bytes_of_weights(norm->beta, norm->width)});
  }
  unsigned blocks = 0;
  std::vector<device::Stream::Bytes> written;
  for (size_t i = 0; i < kMostProducts; ++i) {
    p.end[i] = ~0u;
    if (i >= all.size()) continue;
    p.at[i] = all[i];
    blocks += of_each(i), p.end[i] = blocks;
    p.early &= unwritten(stream, {bytes_of_b(all[i]), bytes_of_bias(all[i])});
    add_written(all[i], written);
  }
  launch_overlapping(stream, {dim3(blocks), cluster}, dim3(static_cast<unsigned>(threads)), shared, std::move(written),
                     kernel, p);
  return true;
}

bool fits(const NormWithin* norm, int threads) {
  return norm == nullptr || norm->team.by_lanes || norm->team.threads <= threads;
}

template <typename T, int kM>
bool launch_columns(std::span<const Gemm> all, const NormWithin* norm, device::Stream& stream) {
  Products p = {};
  int threads = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const ColumnBlock b = column_block<kM>(all[i], kWide<T>);
    if (all[i].k * b.across > int64_t{kMostLoads} * b.threads) return false;
    p.across[i] = std::countr_zero(static_cast<unsigned>(b.across)), threads = b.threads;
  }
  if (!fits(norm, threads)) return false;
  p.a_at = static_cast<unsigned>(kAhead * 16 * threads);
  const size_t shared = p.a_at + (norm == nullptr ? 0 : norm->shared_bytes(kM, sizeof(T)));
  return launch_products(p, all, norm, stream, 1, threads, shared,
                         norm == nullptr ? thin_columns<T, kM, false> : thin_columns<T, kM, true>, [&](size_t i) {
                           return static_cast<unsigned>(quotient_up(all[i].n, int64_t{kWide<T>} << p.across[i]));
                         });
}

template <typename T, int kM>
bool launch_tiles(std::span<const Gemm> all, const NormWithin* norm, device::Stream& stream) {
  const Gemm& g = all.front();
  const auto tiles = [](const Gemm& one) { return quotient_up(one.n, kTileColumns); };
  int64_t all_tiles = 0;
  for (const Gemm& one : all) all_tiles += tiles(one);
  const int cuts = cuts_of_tiles(all_tiles, g.k);
  const auto up = [](int64_t x, int64_t to) { return static_cast<unsigned>(quotient_up(x, to) * to); };
  Products p = {};
  p.cuts = std::countr_zero(static_cast<unsigned>(cuts));
  p.of_cut = static_cast<int>(up(quotient_up(g.k, cuts), kTileRows));
  if (!fits(norm, kTileThreads)) return false;
  p.wide_a = begins_at(g, g.a.data, 16, g.m == 1 ? 0 : g.a.step, &GemmBatch::a, kWide<T>);
  p.a_at = kTileRing;
  const size_t of_a =
      norm == nullptr ? static_cast<size_t>(kM * p.of_cut) * sizeof(T) : norm->shared_bytes(kM, sizeof(T));
  p.slices_at = up(static_cast<int64_t>(p.a_at + of_a), 16);
  const size_t slices = cuts == 1 ? 0 : static_cast<size_t>(cuts * kM * kTileColumns) * sizeof(float);
  const size_t shared = std::max(p.slices_at + slices, kOfOneBlock);
  return launch_products(p, all, norm, stream, static_cast<unsigned>(cuts), kTileThreads, shared,
                         norm == nullptr ? thin_tiles<T, kM, false> : thin_tiles<T, kM, true>,
                         [&](size_t i) { return static_cast<unsigned>(tiles(all[i])) << p.cuts; });
}

// b is stored [k n].
template <typename T, int kM>
bool launch_across(std::span<const Gemm> all, const NormWithin* norm, device::Stream& stream) {
  for (const Gemm& g : all)
    if (g.n % kWide<T> != 0 || !begins_at(g, g.b.data, 16, g.b.step, &GemmBatch::b, kWide<T>)) return false;
  if constexpr (sizeof(T) == 2 && kCopiesBeside) {  // only such devices have clusters
    // Compute capability 12.0 has clusters, but too little shared memory.
    if (has_clusters(thin_tiles<T, kM, false>) && kOfOneBlock + kOfItsOwn <= most_shared())
      return launch_tiles<T, kM>(all, norm, stream);
  }
  return launch_columns<T, kM>(all, norm, stream);
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
      done = g.b.transposed ? launch_rows<T, kM>(g, stream) : launch_across<T, kM>(all, norm, stream);
    };
    g.m == 1   ? launch(std::integral_constant<int, 1>())
    : g.m == 2 ? launch(std::integral_constant<int, 2>())
               : launch(std::integral_constant<int, 4>());
  });
  return done;
}

}  // namespace kintsugi::KINTSUGI_GPU

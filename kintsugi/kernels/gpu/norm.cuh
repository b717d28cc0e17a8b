// Layer norm and RMS norm, and their gradients. A team of threads holds a row in registers, so that it is read once: a
// warp for rows of up to 1,024 elements (fp32: 768), else a block. Each warp normalizes one row and exits; block
// kernels, and gradients, prefetch the next rows into shared memory. Only rows that are too long for that, or not
// aligned to 16 bytes, are read again.
//
// All sums of a row are computed in one pass, relative to a pivot, the mean of its first run of N elements. With
// `width` elements of deviation s, the mean differs from the pivot by at most s sqrt(width / N), so that the variance,
// computed as a difference of sums, loses at most a factor of width / N of fp32's precision, and almost nothing if the
// first run is like the others.
//
// The gradients of gamma and beta are sums over rows. Teams take rows in turn, and each thread sums its columns; the
// sums of the blocks are added at the end. The assignment of rows to teams depends only on the shapes.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/gpu/row_teams.h"

namespace kintsugi::KINTSUGI_GPU {

int64_t norm_grad_workspace(const KernelShapes&);

namespace {

using kernels::NormGradIn;
using kernels::NormGradOut;
using kernels::NormIn;

constexpr int kLongThreads = 256;  // block size if the row is not held in registers
constexpr int kRowsOfBlock = 4;    // rows per block, one per warp

// Shift and scale of a row.
struct RowStatistics {
  float mean, inverse;
};

// x, y, dy, dx: [count width], gamma, beta: [width]
template <typename T>
struct Norm {
  const T *x, *dy;
  T *y, *dx;
  AnyData gamma, beta;  // beta may be null
  int64_t count;
  int width;
  float epsilon, offset;
  bool shifts, add;     // shifts: subtract the mean (layer norm); add: accumulate into y, or dx
  bool early;           // gamma and beta may be read before the preceding kernel has finished
  RowStatistics* rows;  // for rows that are not held
  float* partial;       // per-chunk sums, [chunks parts width]: of gamma, of beta and, with kSums, of dx
};

// One row per warp. W: type of gamma and beta, which are prefetched during the reduction.
template <typename T, typename W, int kRuns, int N>
__global__ void __launch_bounds__(32 * kRowsOfBlock) normalize_by_lanes(Norm<T> n) {
  const int lane = static_cast<int>(threadIdx.x) % 32, first = lane * N;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / 32;
  wait_for_kernels_before();
  let_next_begin();
  const int width = row < n.count ? n.width : 0;
  Packed<T, N> x[kRuns] = {};
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r)
    if (first + r * 32 * N < width) x[r].load(n.x + row * n.width + first + r * 32 * N);
  Packed<W, N> gamma[kRuns] = {}, beta[kRuns] = {};
  const auto *const of_gamma = static_cast<const W*>(n.gamma.data), *const of_beta = static_cast<const W*>(n.beta.data);
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    const int column = first + r * 32 * N;
    if (column < width) gamma[r].load(of_gamma + column);
    if (column < width && of_beta != nullptr) beta[r].load(of_beta + column);
  }
  const float pivot = shuffle(pivot_of(x[0], n.shifts), 0);
  Sums<2> sums = {};
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) add_behind(first + r * 32 * N < width ? pivot : 0, x[r], sums.at[0], sums.at[1]);
  sums = lanes_sum(sums);
  const Spread s = spread_of(sums.at[0], sums.at[1], n.shifts, 1.0f / static_cast<float>(n.width), n.epsilon);
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    const int column = first + r * 32 * N;
    if (column >= width) continue;
    float y[N];
    GPU_UNROLL
    for (int i = 0; i < N; ++i) y[i] = (x[r][i] - pivot - s.shift) * s.inverse * (gamma[r][i] + n.offset) + beta[r][i];
    put_run(n.y + row * n.width + column, y, n.add);
  }
}

// One row per block and round.
template <typename T, int kRuns, int N>
__global__ void __launch_bounds__(kMostThreads, 2) normalize_by_blocks(Norm<T> n) {
  using Own = Team<kRuns, N, false>;
  GPU_DYNAMIC_SHARED(float, weights);  // gamma + offset, then beta
  __shared__ Sums<2> scratch[2 * Own::kWarps];
  const int across = Own::kEach * Own::size();
  const int64_t step = gridDim.x;
  const float share = 1.0f / static_cast<float>(n.width);
  using Rows = RowsAhead<T, Own, kRuns, N, 1, forward_slots(kRuns * N * sizeof(T))>;
  Rows rows = {.from = {n.x},
               .last = true,
               .row = blockIdx.x,
               .step = step,
               .count = n.count,
               .width = n.width,
               .shared = reinterpret_cast<Packed<T, N>*>(weights + 2 * across)};
  Packed<T, N> first = {};
  const auto begin_rows = [&] {
    wait_for_kernels_before();
    rows.begin();
    if (rows.row < n.count) first.load(n.x + rows.row * n.width);
  };
  if (!n.early) begin_rows();
  fetch_weights(weights, n.gamma, n.offset, n.width, across);
  fetch_weights(weights + across, n.beta, 0, n.width, across);
  if (n.early) begin_rows();
  let_next_begin();
  for (int turn = 0; rows.row < n.count; rows.advance(), ++turn) {
    typename Rows::Row taken;
    rows.take(taken);
    const auto& x = taken[0];
    const float pivot = pivot_of(first, n.shifts);
    Sums<2> sums = {};
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) add_behind(Own::column(r) < n.width ? pivot : 0, x[r], sums.at[0], sums.at[1]);
    rows.refill();
    if (rows.row + step < n.count) first.load(n.x + (rows.row + step) * n.width);
    sums = Own::sum(sums, scratch, turn);  // its barrier also makes the weights visible
    const Spread s = spread_of(sums.at[0], sums.at[1], n.shifts, share, n.epsilon);
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      const int column = Own::column(r);
      if (column >= n.width) continue;
      float gamma[N], beta[N], y[N];
      load_run(gamma, weights + column), load_run(beta, weights + across + column);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) y[i] = (x[r][i] - pivot - s.shift) * s.inverse * gamma[i] + beta[i];
      put_run(n.y + rows.at + r * Own::size() * N, y, n.add);
    }
  }
}

// If `add`, rounds first, as a separate operation would before accumulation.
template <typename T>
__device__ __forceinline__ float rounded_before(float x, bool add) {
  return add ? widen(narrow<T>(x)) : x;
}

// With xhat the normalized row and g = dy * gamma: dx = inverse * (g - mean(g) - xhat * mean(g * xhat)), without
// mean(g) for RMS norm; dgamma = sum of dy * xhat, dbeta = sum of dy, and with kSums sum of dx as stored (warps only:
// blocks lack the registers). Rows as above.
template <typename T, int kRuns, int N, bool kByLanes, bool kSums>
__global__ void __launch_bounds__(Team<kRuns, N, kByLanes>::kMost, backward_blocks<Team<kRuns, N, kByLanes>>())
    normalize_grad(Norm<T> n) {
  using Own = Team<kRuns, N, kByLanes>;
  GPU_DYNAMIC_SHARED(float, weights);  // gamma + offset, then the sums of the block
  __shared__ Sums<4> scratch[2 * Own::kWarps];
  const int across = Own::kEach * Own::size();
  const int64_t step = static_cast<int64_t>(gridDim.x) * Own::kCount;
  const float share = 1.0f / static_cast<float>(n.width);
  using Rows = RowsAhead<T, Own, kRuns, N, 3, backward_slots<Own>(kRuns * N * sizeof(T))>;
  int64_t top = static_cast<int64_t>(blockIdx.x) * Own::kCount;
  Rows rows = {.from = {n.x, n.dy, n.dx},
               .last = n.add,
               .row = top + Own::number(),
               .step = step,
               .count = n.count,
               .width = n.width,
               .shared = reinterpret_cast<Packed<T, N>*>(weights + across)};
  Packed<T, N> first = {};
  wait_for_kernels_before();
  let_next_begin();
  rows.begin();
  if (!kByLanes && top < n.count) first.load(n.x + top * n.width);
  fetch_weights(weights, n.gamma, n.offset, n.width, across);
  __syncthreads();
  constexpr int kParts = kSums ? 3 : 2;
  float parts[kParts][kRuns][N] = {};
  auto &dgamma = parts[0], &dbeta = parts[1];
  for (int turn = 0; top < n.count; top += step, rows.advance(), ++turn) {
    typename Rows::Row taken;
    rows.take(taken);
    const auto &x = taken[0], &dy = taken[1], &there = taken[2];
    float pivot;
    if constexpr (kByLanes) {
      pivot = shuffle(pivot_of(x[0], n.shifts), 0);
    } else {
      pivot = pivot_of(first, n.shifts);
    }
    Sums<4> sums = {};
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      const float less = Own::column(r) < n.width ? pivot : 0;
      float gamma[N];
      load_run(gamma, weights + Own::column(r));
      GPU_UNROLL
      for (int i = 0; i < N; ++i) {
        const float u = x[r][i] - less, g = dy[r][i] * gamma[i];
        dbeta[r][i] += dy[r][i];
        sums.at[0] += u;
        sums.at[1] += u * u;
        sums.at[2] += g;
        sums.at[3] += g * u;
      }
    }
    rows.refill();
    if (!kByLanes && top + step < n.count) first.load(n.x + (top + step) * n.width);
    sums = Own::sum(sums, scratch, turn);
    const Spread s = spread_of(sums.at[0], sums.at[1], n.shifts, share, n.epsilon);
    const float shift = -s.shift * s.inverse;                           // xhat = u * inverse + shift
    const float of_g = n.shifts ? -sums.at[2] * share * s.inverse : 0;  // dx = g * inverse + of_g
    const float of_xhat = -(sums.at[3] - s.shift * sums.at[2]) * share * s.inverse * s.inverse;  //   + xhat * of_xhat
    if (rows.row >= n.count) continue;
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      const int column = Own::column(r);
      float gamma[N], dx[N];
      load_run(gamma, weights + column);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) {
        const float xhat = (x[r][i] - pivot) * s.inverse + shift;
        dgamma[r][i] = fmaf(dy[r][i], xhat,
                            dgamma[r][i]);  // explicit fmaf, since compilers contract it only in some instantiations
        dx[i] = rounded_before<T>(dy[r][i] * gamma[i] * s.inverse + of_g + xhat * of_xhat, n.add) + there[r][i];
      }
      if (column < n.width) put_run(n.dx + rows.at + r * Own::size() * N, dx, false);
      if constexpr (kSums) GPU_UNROLL
      for (int i = 0; i < N; ++i) parts[2][r][i] += column < n.width ? widen(narrow<T>(dx[i])) : 0;
    }
  }

  float* const to = n.partial + static_cast<int64_t>(blockIdx.x) * kParts * n.width;
  if constexpr (kByLanes) {
    // The teams' sums reuse the memory of the rows, part after part.
    float* const of_teams = weights + across;
    __syncthreads();
    GPU_UNROLL
    for (int p = 0; p < kParts; ++p) GPU_UNROLL
    for (int r = 0; r < kRuns; ++r)
      put_run(of_teams + (Own::number() * kParts + p) * across + Own::column(r), parts[p][r], false);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x) * 4; i < kParts * across; i += static_cast<int>(blockDim.x) * 4) {
      const int part = i / across, column = i - part * across;
      if (column >= n.width) continue;
      float sum[4] = {};
      GPU_UNROLL
      for (int team = 0; team < Own::kCount; ++team) {
        float more[4];
        load_run(more, of_teams + team * kParts * across + i);
        GPU_UNROLL
        for (int k = 0; k < 4; ++k) sum[k] += more[k];
      }
      put_run(to + part * n.width + column, sum, false);
    }
  } else {
    GPU_UNROLL
    for (int p = 0; p < kParts; ++p) GPU_UNROLL
    for (int r = 0; r < kRuns; ++r)
      if (Own::column(r) < n.width) put_run(to + p * n.width + Own::column(r), parts[p][r], false);
  }
}

// Any row: a block reads it repeatedly.
template <typename T>
__device__ RowStatistics statistics_of(const Norm<T>& n, const T* x, float* scratch) {
  float mean = 0;
  if (n.shifts) {
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < n.width; i += static_cast<int>(blockDim.x)) sum += widen(x[i]);
    mean = block_sum(sum, scratch) / static_cast<float>(n.width);
  }
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n.width; i += static_cast<int>(blockDim.x)) {
    const float d = widen(x[i]) - mean;
    squares += d * d;
  }
  squares = block_sum(squares, scratch);
  return {mean, rsqrtf(squares / static_cast<float>(n.width) + n.epsilon)};
}

__device__ __forceinline__ float one_of(const AnyData& x, int at) {
  float one[1];
  x.load(one, at);
  return one[0];
}

template <typename T>
__global__ void __launch_bounds__(kLongThreads) normalize_any(Norm<T> n) {
  __shared__ float scratch[32];
  const int64_t at = static_cast<int64_t>(blockIdx.x) * n.width;
  const RowStatistics s = statistics_of(n, n.x + at, scratch);
  for (int i = static_cast<int>(threadIdx.x); i < n.width; i += static_cast<int>(blockDim.x)) {
    const float beta = n.beta.data == nullptr ? 0 : one_of(n.beta, i);
    put(&n.y[at + i], (widen(n.x[at + i]) - s.mean) * s.inverse * (n.offset + one_of(n.gamma, i)) + beta, n.add);
  }
}

// Two block sums at once; scratch: 64 elements, as block_sum().
__device__ __forceinline__ void block_sums(float& x, float& y, float* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  x = lanes_sum(x), y = lanes_sum(y);
  __syncthreads();
  if (lane == 0) scratch[group] = x, scratch[32 + group] = y;
  __syncthreads();
  const bool there = lane < static_cast<int>(blockDim.x) / 32;
  x = lanes_sum(there ? scratch[lane] : 0.0f), y = lanes_sum(there ? scratch[32 + lane] : 0.0f);
}

template <typename T>
__global__ void __launch_bounds__(kLongThreads) normalize_grad_any(Norm<T> n) {
  __shared__ float scratch[64];
  const T* const x = n.x + static_cast<int64_t>(blockIdx.x) * n.width;
  const T* const dy = n.dy + static_cast<int64_t>(blockIdx.x) * n.width;
  T* const dx = n.dx + static_cast<int64_t>(blockIdx.x) * n.width;
  const RowStatistics s = statistics_of(n, x, scratch);
  if (threadIdx.x == 0) n.rows[blockIdx.x] = s;
  float sum = 0, product = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n.width; i += static_cast<int>(blockDim.x)) {
    const float g = widen(dy[i]) * (n.offset + one_of(n.gamma, i));
    sum += g;
    product += g * (widen(x[i]) - s.mean) * s.inverse;
  }
  block_sums(sum, product, scratch);
  sum = n.shifts ? sum / static_cast<float>(n.width) : 0, product /= static_cast<float>(n.width);
  for (int i = static_cast<int>(threadIdx.x); i < n.width; i += static_cast<int>(blockDim.x)) {
    const float g = widen(dy[i]) * (n.offset + one_of(n.gamma, i));
    const float made = s.inverse * (g - sum - (widen(x[i]) - s.mean) * s.inverse * product);
    put(&dx[i], rounded_before<T>(made, n.add), n.add);
  }
}

// Sums over a chunk of rows that are not held: a block has 64 columns, and 4 rows at a time.
template <typename T>
__global__ void __launch_bounds__(kLongThreads) column_sums(Norm<T> n) {
  constexpr int kColumns = 64;
  __shared__ float sums[2][4][kColumns];
  const int lane = static_cast<int>(threadIdx.x) % kColumns, part = static_cast<int>(threadIdx.x) / kColumns;
  const int column = static_cast<int>(blockIdx.x) * kColumns + lane;
  const int64_t begin = n.count * blockIdx.y / gridDim.y, end = n.count * (blockIdx.y + 1) / gridDim.y;
  float gamma = 0, beta = 0;
  if (column < n.width)
    for (int64_t row = begin + part; row < end; row += 4) {
      const RowStatistics s = n.rows[row];
      const float d = widen(n.dy[row * n.width + column]);
      beta += d;
      gamma += d * (widen(n.x[row * n.width + column]) - s.mean) * s.inverse;
    }
  sums[0][part][lane] = gamma;
  sums[1][part][lane] = beta;
  __syncthreads();
  if (part < 2 && column < n.width)
    n.partial[(static_cast<int64_t>(blockIdx.y) * 2 + part) * n.width + column] =
        sums[part][0][lane] + sums[part][1][lane] + sums[part][2][lane] + sums[part][3][lane];
}

// Sums over the chunks. A block has 32 columns of one part.
struct ChunkParts {
  struct Part {
    AnyData to;  // null: not requested
    bool add = false;
  };
  Part gamma, beta, dx;
};
__global__ void __launch_bounds__(32 * kMostGroups)
    join_chunks(const float* partial, ChunkParts parts, int chunks, int width) {
  __shared__ ChunkSums sums;
  const int first = static_cast<int>(blockIdx.x) * 32, part = static_cast<int>(blockIdx.y);
  const ChunkParts::Part out = part == 0 ? parts.gamma : part == 1 ? parts.beta : parts.dx;
  wait_for_kernels_before();
  let_next_begin();
  if (out.to.data == nullptr) return;
  join_columns_of_chunks(partial + part * width + first, chunks, static_cast<int64_t>(gridDim.y) * width, width - first,
                         sums, [&](int i, float sum) {
                           const float one[1] = {sum};
                           out.to.put(first + i, one, out.add);
                         });
}

// Calls f with the team that holds a row and its threads, else `any`. wide: N elements can be read at a time.
template <int N, typename F, typename Any>
void with_team(int width, DType dtype, bool wide, const F& f, const Any& any) {
  if (!wide || width > kMostHeld) return any();
  const TeamSize size = team_size(width, dtype);
  const auto with = [&]<int kEach>(std::integral_constant<int, kEach>) {
    if (size.each != kEach) return;
    if (size.by_lanes) return f(Team<kEach / N, N, true>(), size.threads);
    if constexpr (kEach <= 16) f(Team<kEach / N, N, false>(), size.threads);
  };
  with(std::integral_constant<int, 8>());
  with(std::integral_constant<int, 16>());
  with(std::integral_constant<int, 24>());
  if constexpr (N > 4) with(std::integral_constant<int, 32>());
}

dim3 blocks(int64_t x, int64_t y = 1) {
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y));
}

dim3 long_threads(int width) {
  return dim3(static_cast<unsigned>(std::clamp((width + 31) / 32 * 32, 32, kLongThreads)));
}

template <typename T>
Norm<T> norm_of(const KernelCall& call, bool shifts) {
  const View &x = call.ins[NormIn::kX], &gamma = call.ins[NormIn::kGamma];
  Norm<T> n = {};
  n.x = data<T>(x), n.gamma = any_data("a norm", gamma);
  n.width = static_cast<int>(gamma.elements());
  n.count = n.width == 0 ? 0 : x.elements() / n.width;
  n.epsilon = static_cast<float>(call.attributes.number("epsilon"));
  n.offset = static_cast<float>(call.attributes.number_or("gamma_offset", 0));
  n.shifts = shifts, n.add = call.accumulates(0);
  return n;
}

// Shared memory per block in bytes: `weights` floats per column, then prefetched rows per thread.
template <typename Team>
size_t shared_of(int threads, int weights, int rows) {
  return static_cast<size_t>(threads) * (Team::kEach * sizeof(float) * weights + Team::kCount * rows);
}

void forward(const KernelCall& call, bool shifts) {
  dispatch("a norm", call.ins[NormIn::kX].dtype(), [&]<typename T>(T) {
    Norm<T> n = norm_of<T>(call, shifts);
    n.y = data<T>(call.outs[0]);
    device::Stream::Bytes bytes_of_beta;
    if (shifts && call.ins.size() > NormIn::kBeta) {
      n.beta = any_data("a norm", call.ins[NormIn::kBeta]);
      bytes_of_beta = bytes_of(call.ins[NormIn::kBeta]);
    }
    constexpr int kN = kWide<T>;
    const bool known = n.gamma.dtype == DType::f32 || n.gamma.dtype == call.ins[NormIn::kX].dtype();
    const bool alike = n.beta.data == nullptr || n.beta.dtype == n.gamma.dtype;
    const bool wide = n.width % 8 == 0 && known && alike && all_wide(n.x, n.y, n.gamma.data, n.beta.data);
    const auto any = [&] { launch(*call.stream, blocks(n.count), long_threads(n.width), 0, normalize_any<T>, n); };
    with_team<kN>(
        n.width, call.ins[NormIn::kX].dtype(), wide,
        [&]<int kRuns, bool kByLanes>(Team<kRuns, kN, kByLanes>, int threads) {
          const std::vector<device::Stream::Bytes> written = {bytes_of(call.outs[0])};
          if constexpr (kByLanes) {
            const auto by = [&]<typename W>(W) {
              launch_overlapping(*call.stream, blocks(quotient_up(n.count, kRowsOfBlock)), dim3(32 * kRowsOfBlock), 0,
                                 written, normalize_by_lanes<T, W, kRuns, kN>, n);
            };
            n.gamma.dtype == DType::f32 ? by(float()) : by(T());
          } else {
            constexpr int kBytes = kRuns * 16;
            const size_t shared = shared_of<Team<kRuns, kN, false>>(threads, 2, forward_slots(kBytes) * kBytes);
            if (!has_shared(shared)) return any();
            n.early = unwritten(*call.stream, {bytes_of(call.ins[NormIn::kGamma]), bytes_of_beta});
            launch_overlapping(*call.stream, blocks(std::min(n.count, kProcessors * (1024 / threads))),
                               dim3(static_cast<unsigned>(threads)), shared, written, normalize_by_blocks<T, kRuns, kN>,
                               n);
          }
        },
        any);
  });
}

void backward(const KernelCall& call, bool shifts) {
  dispatch("a norm", call.ins[NormGradIn::kX].dtype(), [&]<typename T>(T) {
    Norm<T> n = norm_of<T>(call, shifts);
    if (n.count == 0) return;
    n.dy = data<T>(call.ins[NormGradIn::kDy]), n.dx = data<T>(call.outs[NormGradOut::kDx]);
    const int64_t chunks = row_turns(n.count, n.width, call.ins[NormGradIn::kX].dtype()).chunks;
    const auto part = [&](size_t out) -> ChunkParts::Part {
      if (out >= call.outs.size()) return {};
      return {any_data("a norm", call.outs[out]), call.accumulates(out)};
    };
    const ChunkParts out = {part(NormGradOut::kDgamma), part(NormGradOut::kDbeta), part(NormGradOut::kSums)};
    const bool sums = out.dx.to.data != nullptr;
    bool summed = false;
    n.partial = reinterpret_cast<float*>(call.workspace.data());
    n.rows = reinterpret_cast<RowStatistics*>(n.partial + chunks * 2 * n.width);
    constexpr int kN = kWide<T>;
    const bool wide = n.width % 8 == 0 && all_wide(n.x, n.dy, n.dx, n.gamma.data);
    const auto any = [&] {
      launch(*call.stream, blocks(n.count), long_threads(n.width), 0, normalize_grad_any<T>, n);
      launch(*call.stream, blocks((n.width + 63) / 64, chunks), dim3(kLongThreads), 0, column_sums<T>, n);
    };
    with_team<kN>(
        n.width, call.ins[NormGradIn::kX].dtype(), wide,
        [&]<int kRuns, bool kByLanes>(Team<kRuns, kN, kByLanes>, int threads) {
          using Own = Team<kRuns, kN, kByLanes>;
          constexpr int kBytes = Own::kEach * sizeof(T);
          // Returns false, with nothing done, if the device has too little shared memory.
          const auto launch_with = [&]<int kParts>(std::integral_constant<int, kParts>) {
            constexpr int kSummed = kByLanes ? kParts * Own::kEach * static_cast<int>(sizeof(float)) : 0;
            constexpr int kAhead = backward_slots<Own>(kBytes) * 3 * kBytes;
            const size_t shared = shared_of<Own>(threads, 1, std::max(kAhead, kSummed));
            if (!has_shared(shared)) return false;
            launch_overlapping(
                *call.stream, blocks(chunks), dim3(static_cast<unsigned>(threads * Own::kCount)), shared,
                {bytes_at(n.partial, chunks * kParts * n.width * 4), bytes_of(call.outs[NormGradOut::kDx])},
                normalize_grad<T, kRuns, kN, kByLanes, kParts == 3>, n);
            return true;
          };
          if constexpr (kByLanes) summed = sums && launch_with(std::integral_constant<int, 3>());
          if (!summed && !launch_with(std::integral_constant<int, 2>())) any();
        },
        any);
    std::vector<device::Stream::Bytes> written;
    for (size_t i = NormGradOut::kDgamma; i < call.outs.size(); ++i) written.push_back(bytes_of(call.outs[i]));
    launch_overlapping(*call.stream, blocks((n.width + 31) / 32, summed ? 3 : 2),
                       dim3(static_cast<unsigned>(32 * std::min<int64_t>(chunks, kMostGroups))), 0, std::move(written),
                       join_chunks, n.partial, out, static_cast<int>(chunks), n.width);
    if (sums && !summed) make_also(call, sum, call.outs[NormGradOut::kDx], NormGradOut::kSums);
  });
}

}  // namespace

int64_t norm_grad_workspace(const KernelShapes& s) {
  const int64_t width = s.ins[NormGradIn::kGamma]->shape.elements();
  const int64_t count = width == 0 ? 0 : s.ins[NormGradIn::kX]->shape.elements() / width;
  const bool sums = s.outs.size() > NormGradOut::kSums && s.outs[NormGradOut::kSums] != nullptr;
  const int64_t of_chunk = width * static_cast<int64_t>(sizeof(float));
  const int64_t chunks = row_turns(count, width, s.ins[NormGradIn::kX]->dtype).chunks;
  const int64_t own = chunks * 2 * of_chunk +
                      std::max(sums ? chunks * of_chunk : 0, count * static_cast<int64_t>(sizeof(RowStatistics)));
  if (!sums) return own;
  const tensor::Type* const ins[] = {s.outs[NormGradOut::kDx]};
  return std::max(own, sum_workspace({.ins = ins, .outs = s.outs.subspan(NormGradOut::kSums, 1), .attributes = {}}));
}

void layer_norm(const KernelCall& call) {
  forward(call, true);
}
void layer_norm_grad(const KernelCall& call) {
  backward(call, true);
}
void rms_norm(const KernelCall& call) {
  forward(call, false);
}
void rms_norm_grad(const KernelCall& call) {
  backward(call, false);
}

}  // namespace kintsugi::KINTSUGI_GPU

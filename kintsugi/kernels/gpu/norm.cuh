// Layer norm and RMS norm, and their gradients: a block of threads for each row, or of a gradient 32 lanes, in whose
// registers it stays, so that it is read once. Only rows that are too long for that, or that do not begin at multiples
// of 16 bytes, are read again.
//
// The gradients of gamma and beta are sums over rows. A block has a chunk of the rows, and each thread adds up its
// columns; the sums of the chunks are joined at the end. How rows are cut depends on the shapes alone.
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

int64_t norm_grad_workspace(const KernelShapes&);

namespace {

using kernels::NormGradIn;
using kernels::NormGradOut;
using kernels::NormIn;

constexpr int kMostThreads = 512;  // of a block that holds its row, with 8 or 16 elements each
constexpr int kMostHeld = kMostThreads * 16;
constexpr int kLongThreads = 256;  // of one that does not

// Of a row: what it is shifted and scaled by.
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
  bool shifts, add;     // shifts: by the mean, which layer norm does; add: to y, or to dx
  RowStatistics* rows;  // of rows that are not held
  float* partial;       // sums of the chunks: of gamma, then of beta, [chunk 2 width]
};

// The column where run r of a thread begins: neighbouring threads have neighbouring runs of N elements.
template <int N>
__device__ __forceinline__ int column_of(int r) {
  return (r * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * N;
}

// Elements behind the row are zero.
template <typename T, int kRuns, int N>
__device__ __forceinline__ void load_row(float (&held)[kRuns][N], const T* row, int width) {
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    GPU_UNROLL
    for (int i = 0; i < N; ++i) held[r][i] = 0;
    if (column_of<N>(r) < width) load_run(held[r], row + column_of<N>(r));
  }
}

// Makes of x what is shifted and scaled, and gives what it is scaled by. scratch: 32 elements.
template <int kRuns, int N>
__device__ __forceinline__ float standardize(float (&x)[kRuns][N], int width, bool shifts, float epsilon,
                                             float* scratch) {
  const float count = static_cast<float>(width);
  if (shifts) {
    float sum = 0;
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) GPU_UNROLL
    for (int i = 0; i < N; ++i) sum += x[r][i];
    const float mean = block_sum(sum, scratch) / count;
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) GPU_UNROLL
    for (int i = 0; i < N; ++i)
      if (column_of<N>(r) < width) x[r][i] -= mean;
  }
  float squares = 0;
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) GPU_UNROLL
  for (int i = 0; i < N; ++i) squares += x[r][i] * x[r][i];
  const float inverse = rsqrtf(block_sum(squares, scratch) / count + epsilon);
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) GPU_UNROLL
  for (int i = 0; i < N; ++i) x[r][i] *= inverse;
  return inverse;
}

// A block for each row; a thread has kRuns runs of N elements.
template <typename T, int kRuns, int N>
__global__ void __launch_bounds__(kMostThreads, 2) normalize(Norm<T> n) {
  __shared__ float scratch[32];
  const int64_t at = static_cast<int64_t>(blockIdx.x) * n.width;
  float x[kRuns][N];
  load_row(x, n.x + at, n.width);
  standardize(x, n.width, n.shifts, n.epsilon, scratch);
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    const int column = column_of<N>(r);
    if (column >= n.width) continue;
    float gamma[N], beta[N] = {};
    n.gamma.load(gamma, column);
    if (n.beta.data != nullptr) n.beta.load(beta, column);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) x[r][i] = x[r][i] * (n.offset + gamma[i]) + beta[i];
    put_run(n.y + at + column, x[r], n.add);
  }
}

constexpr int kLaneWarps = 4;          // of a block of which each 32 lanes have rows of their own
constexpr int kMostByLanes = 32 * 32;  // elements of such a row

// Shifts x, which 32 lanes have in runs, zeros behind the row, and gives what it is scaled by.
template <typename T, int kRuns, int N>
__device__ __forceinline__ float center_by_lanes(float (&x)[kRuns][N], const Norm<T>& n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float width = static_cast<float>(n.width);
  float mean = 0, squares = 0;
  if (n.shifts) {
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) GPU_UNROLL
    for (int i = 0; i < N; ++i) mean += x[r][i];
    mean = lanes_sum(mean) / width;
  }
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) GPU_UNROLL
  for (int i = 0; i < N; ++i) {
    x[r][i] = (r * 32 + lane) * N < n.width ? x[r][i] - mean : 0;
    squares += x[r][i] * x[r][i];
  }
  return rsqrtf(lanes_sum(squares) / width + n.epsilon);
}

// 32 lanes for each row.
template <typename T, int kRuns, int N>
__global__ void __launch_bounds__(32 * kLaneWarps) normalize_by_lanes(Norm<T> n) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t own = static_cast<int64_t>(blockIdx.x) * kLaneWarps + warp, row = std::min(own, n.count - 1);
  const auto column = [&](int r) { return (r * 32 + lane) * N; };
  float x[kRuns][N];
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    GPU_UNROLL
    for (int i = 0; i < N; ++i) x[r][i] = 0;
    if (column(r) < n.width) load_run(x[r], n.x + row * n.width + column(r));
  }
  const float inverse = center_by_lanes(x, n);
  if (own != row) return;
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    if (column(r) >= n.width) continue;
    float gamma[N], beta[N] = {};
    n.gamma.load(gamma, column(r));
    if (n.beta.data != nullptr) n.beta.load(beta, column(r));
    GPU_UNROLL
    for (int i = 0; i < N; ++i) x[r][i] = x[r][i] * inverse * (n.offset + gamma[i]) + beta[i];
    put_run(n.y + row * n.width + column(r), x[r], n.add);
  }
}

// Where `add`, to what is there, as an operation of its own would: rounded before.
template <typename T, int N>
__device__ __forceinline__ void put_behind(T* to, const float (&x)[N], bool add) {
  float rounded[N];
  GPU_UNROLL
  for (int i = 0; i < N; ++i) rounded[i] = add ? widen(narrow<T>(x[i])) : x[i];
  put_run(to, rounded, add);
}

// Two sums over the block at once; scratch: 64 elements, as block_sum.
__device__ __forceinline__ void block_sums(float& x, float& y, float* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  x = lanes_sum(x), y = lanes_sum(y);
  __syncthreads();
  if (lane == 0) scratch[group] = x, scratch[32 + group] = y;
  __syncthreads();
  const bool there = lane < static_cast<int>(blockDim.x) / 32;
  x = lanes_sum(there ? scratch[lane] : 0.0f), y = lanes_sum(there ? scratch[32 + lane] : 0.0f);
}

// With g = dy * gamma: dx = inverse * (g - mean of g - xhat * mean of (g * xhat)), where RMS norm has no mean of g;
// dgamma = sum of dy * xhat, dbeta = sum of dy. A block for each chunk of rows.
template <typename T, int kRuns, int N>
__global__ void __launch_bounds__(kMostThreads) normalize_grad(Norm<T> n) {
  __shared__ float scratch[64];
  const int64_t begin = n.count * blockIdx.x / gridDim.x, end = n.count * (blockIdx.x + 1) / gridDim.x;
  float dgamma[kRuns][N] = {}, dbeta[kRuns][N] = {};
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * n.width;
    float x[kRuns][N], dy[kRuns][N];
    load_row(x, n.x + at, n.width);
    load_row(dy, n.dy + at, n.width);
    const float inverse = standardize(x, n.width, n.shifts, n.epsilon, scratch);
    float sum = 0, product = 0;
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      if (column_of<N>(r) >= n.width) continue;
      float gamma[N];
      n.gamma.load(gamma, column_of<N>(r));
      GPU_UNROLL
      for (int i = 0; i < N; ++i) {
        dgamma[r][i] += dy[r][i] * x[r][i];
        dbeta[r][i] += dy[r][i];
        dy[r][i] *= n.offset + gamma[i];
        sum += dy[r][i];
        product += dy[r][i] * x[r][i];
      }
    }
    block_sums(sum, product, scratch);
    sum = n.shifts ? sum / static_cast<float>(n.width) : 0, product /= static_cast<float>(n.width);
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      if (column_of<N>(r) >= n.width) continue;
      GPU_UNROLL
      for (int i = 0; i < N; ++i) dy[r][i] = inverse * (dy[r][i] - sum - x[r][i] * product);
      put_behind(n.dx + at + column_of<N>(r), dy[r], n.add);
    }
  }
  float* const to = n.partial + static_cast<int64_t>(blockIdx.x) * 2 * n.width;
  GPU_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    if (column_of<N>(r) >= n.width) continue;
    put_run(to + column_of<N>(r), dgamma[r], false);
    put_run(to + n.width + column_of<N>(r), dbeta[r], false);
  }
}

// The same with 32 lanes for each row: no barrier within a row, and the next row is on its way while one is worked on.
template <typename T, int kRuns, int N>
__global__ void __launch_bounds__(32 * kLaneWarps, kRuns* N <= 16 ? 3 : 2) normalize_grad_by_lanes(Norm<T> n) {
  __shared__ float sums[2][kRuns * 32 * N];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t begin = n.count * blockIdx.x / gridDim.x, end = n.count * (blockIdx.x + 1) / gridDim.x;
  const float width = static_cast<float>(n.width);
  const auto column = [&](int r) { return (r * 32 + lane) * N; };
  const auto load = [&](Vec<T, N>(&held)[kRuns], const T* row) {
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      held[r] = {};
      if (column(r) < n.width) held[r] = *reinterpret_cast<const Vec<T, N>*>(row + column(r));
    }
  };
  constexpr bool kAhead = kRuns * N <= 24;  // more has no registers for it
  float dgamma[kRuns][N] = {}, dbeta[kRuns][N] = {};
  Vec<T, N> next_x[kRuns], next_dy[kRuns];
  const auto load_both = [&](int64_t row) {
    load(next_x, n.x + row * n.width);
    load(next_dy, n.dy + row * n.width);
  };
  if (kAhead && begin < end) load_both(std::min(begin + warp, end - 1));
  // As many times for each warp: all take part in each exchange.
  for (int64_t first = begin; first < end; first += kLaneWarps) {
    const int64_t row = std::min(first + warp, end - 1);
    const bool own = first + warp < end;
    if (!kAhead) load_both(row);
    float x[kRuns][N], dy[kRuns][N];
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) GPU_UNROLL
    for (int i = 0; i < N; ++i) x[r][i] = widen(next_x[r][i]), dy[r][i] = own ? widen(next_dy[r][i]) : 0;
    if (kAhead && row + kLaneWarps < end) load_both(row + kLaneWarps);
    Vec<T, N> there[kRuns];
    if (kAhead && n.add && own) load(there, n.dx + row * n.width);
    const float inverse = center_by_lanes(x, n);
    float sum = 0, product = 0;
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      if (column(r) >= n.width) continue;
      float gamma[N];
      n.gamma.load(gamma, column(r));
      GPU_UNROLL
      for (int i = 0; i < N; ++i) {
        x[r][i] *= inverse;
        dgamma[r][i] += dy[r][i] * x[r][i];
        dbeta[r][i] += dy[r][i];
        dy[r][i] *= n.offset + gamma[i];
        sum += dy[r][i];
        product += dy[r][i] * x[r][i];
      }
    }
    sum = n.shifts ? lanes_sum(sum) / width : 0, product = lanes_sum(product) / width;
    if (!own) continue;
    GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      if (column(r) >= n.width) continue;
      GPU_UNROLL
      for (int i = 0; i < N; ++i) dy[r][i] = inverse * (dy[r][i] - sum - x[r][i] * product);
      if (kAhead && n.add) {
        GPU_UNROLL
        for (int i = 0; i < N; ++i) dy[r][i] = widen(narrow<T>(dy[r][i])) + widen(there[r][i]);
      }
      put_behind(n.dx + row * n.width + column(r), dy[r], n.add && !kAhead);
    }
  }
  for (int w = 0; w < kLaneWarps; ++w) {
    if (w == warp) {
      GPU_UNROLL
      for (int r = 0; r < kRuns; ++r) GPU_UNROLL
      for (int i = 0; i < N; ++i) {
        float &gamma = sums[0][column(r) + i], &beta = sums[1][column(r) + i];
        gamma = (w == 0 ? 0 : gamma) + dgamma[r][i], beta = (w == 0 ? 0 : beta) + dbeta[r][i];
      }
    }
    __syncthreads();
  }
  float* const to = n.partial + static_cast<int64_t>(blockIdx.x) * 2 * n.width;
  for (int i = static_cast<int>(threadIdx.x); i < n.width; i += 32 * kLaneWarps)
    to[i] = sums[0][i], to[n.width + i] = sums[1][i];
}

// Any row: a block reads it again and again.
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
    const float made[1] = {s.inverse * (g - sum - (widen(x[i]) - s.mean) * s.inverse * product)};
    put_behind(&dx[i], made, n.add);
  }
}

// The sums over a chunk of rows that are not held: a block has 64 columns, and 4 rows at a time.
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

// dgamma and dbeta: the sums over the chunks. A block has 32 columns of one of them, and as many groups of threads as
// it takes chunks at a time.
struct ChunkSums {
  AnyData dgamma, dbeta;  // null: not asked for
  bool add_gamma, add_beta;
};
constexpr int kMostGroups = 32;
__global__ void __launch_bounds__(32 * kMostGroups)
    join_chunks(const float* partial, ChunkSums out, int chunks, int width) {
  __shared__ float sums[kMostGroups][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const int groups = static_cast<int>(blockDim.x) / 32, column = static_cast<int>(blockIdx.x) * 32 + lane;
  const bool beta = blockIdx.y == 1;
  const AnyData to = beta ? out.dbeta : out.dgamma;
  if (to.data == nullptr) return;
  float sum = 0;
  if (column < width)
#if KINTSUGI_ON_GPU
#pragma unroll 8
#endif
    for (int c = group; c < chunks; c += groups)
      sum += partial[(static_cast<int64_t>(c) * 2 + blockIdx.y) * width + column];
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || column >= width) return;
  float total[1] = {sum};
  for (int i = 1; i < groups; ++i) total[0] += sums[i][lane];
  to.put(column, total, beta ? out.add_beta : out.add_gamma);
}

// Calls by_lanes(elements of a lane) for short rows, f(kRuns, threads) if rows are held otherwise, else `any`. wide: N
// elements may be read at a time.
template <int N, typename Lanes, typename F, typename Any>
void with_runs(int width, bool wide, const Lanes& by_lanes, const F& f, const Any& any) {
  const auto threads = [&](int each) {
    return dim3(static_cast<unsigned>((width + 32 * each - 1) / (32 * each) * 32));
  };
  if (!wide || width > kMostHeld) return any();
  if (width <= 256) return by_lanes(std::integral_constant<int, 8>());
  if (width <= 512) return by_lanes(std::integral_constant<int, 16>());
  if (width <= 768) return by_lanes(std::integral_constant<int, 24>());
  if (width <= kMostByLanes) return by_lanes(std::integral_constant<int, 32>());
  if (width <= kMostThreads * 8) return f(std::integral_constant<int, 8 / N>(), threads(8));
  f(std::integral_constant<int, 16 / N>(), threads(16));
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

void forward(const KernelCall& call, bool shifts) {
  dispatch("a norm", call.ins[NormIn::kX].dtype(), [&]<typename T>(T) {
    Norm<T> n = norm_of<T>(call, shifts);
    n.y = data<T>(call.outs[0]);
    if (shifts && call.ins.size() > NormIn::kBeta) n.beta = any_data("a norm", call.ins[NormIn::kBeta]);
    constexpr int kN = kWide<T>;
    const bool wide = n.width % 8 == 0 && all_wide(n.x, n.y, n.gamma.data, n.beta.data);
    with_runs<kN>(
        n.width, wide,
        [&]<int kEach>(std::integral_constant<int, kEach>) {
          launch(*call.stream, blocks((n.count + kLaneWarps - 1) / kLaneWarps), dim3(32 * kLaneWarps), 0,
                 normalize_by_lanes<T, kEach / kN, kN>, n);
        },
        [&]<int kRuns>(std::integral_constant<int, kRuns>, dim3 threads) {
          launch(*call.stream, blocks(n.count), threads, 0, normalize<T, kRuns, kN>, n);
        },
        [&] { launch(*call.stream, blocks(n.count), long_threads(n.width), 0, normalize_any<T>, n); });
  });
}

// As many as keep every processor of a large device busy with blocks of that width.
int64_t chunks_of(int64_t count, int64_t width) {
  return std::clamp<int64_t>(count / 8, 1, width <= kMostByLanes ? 528 : width <= 2048 ? 528 : 264);
}

void backward(const KernelCall& call, bool shifts) {
  dispatch("a norm", call.ins[NormGradIn::kX].dtype(), [&]<typename T>(T) {
    Norm<T> n = norm_of<T>(call, shifts);
    if (n.count == 0) return;
    n.dy = data<T>(call.ins[NormGradIn::kDy]), n.dx = data<T>(call.outs[NormGradOut::kDx]);
    const int64_t chunks = chunks_of(n.count, n.width);
    n.partial = reinterpret_cast<float*>(call.workspace.data());
    n.rows = reinterpret_cast<RowStatistics*>(n.partial + chunks * 2 * n.width);
    constexpr int kN = kWide<T>;
    const bool wide = n.width % 8 == 0 && all_wide(n.x, n.dy, n.dx, n.gamma.data);
    with_runs<kN>(
        n.width, wide,
        [&]<int kEach>(std::integral_constant<int, kEach>) {
          launch(*call.stream, blocks(chunks), dim3(32 * kLaneWarps), 0, normalize_grad_by_lanes<T, kEach / kN, kN>, n);
        },
        [&]<int kRuns>(std::integral_constant<int, kRuns>, dim3 threads) {
          launch(*call.stream, blocks(chunks), threads, 0, normalize_grad<T, kRuns, kN>, n);
        },
        [&] {
          launch(*call.stream, blocks(n.count), long_threads(n.width), 0, normalize_grad_any<T>, n);
          launch(*call.stream, blocks((n.width + 63) / 64, chunks), dim3(kLongThreads), 0, column_sums<T>, n);
        });
    ChunkSums out = {.dgamma = any_data("a norm", call.outs[NormGradOut::kDgamma]),
                     .dbeta = {},
                     .add_gamma = call.accumulates(NormGradOut::kDgamma),
                     .add_beta = call.accumulates(NormGradOut::kDbeta)};
    if (call.outs.size() > NormGradOut::kDbeta) out.dbeta = any_data("a norm", call.outs[NormGradOut::kDbeta]);
    launch(*call.stream, blocks((n.width + 31) / 32, 2),
           dim3(static_cast<unsigned>(32 * std::min<int64_t>(chunks, kMostGroups))), 0, join_chunks, n.partial, out,
           static_cast<int>(chunks), n.width);
  });
}

}  // namespace

int64_t norm_grad_workspace(const KernelShapes& s) {
  const int64_t width = s.ins[NormGradIn::kGamma]->shape.elements();
  const int64_t count = width == 0 ? 0 : s.ins[NormGradIn::kX]->shape.elements() / width;
  return chunks_of(count, width) * 2 * width * static_cast<int64_t>(sizeof(float)) +
         count * static_cast<int64_t>(sizeof(RowStatistics));
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

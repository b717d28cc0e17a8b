// Sums over any dims, and log-sum-exp over parts.
//
// If the kept dims enclose the summed ones, x is [above rows columns] and y [above columns]. If above = 1, as for bias
// gradients, rows are taken in turn as in norm gradients, with the same bits (RowTurns; not for fp64, for columns of a
// wider x, or for more columns than a norm holds). Otherwise few rows are summed by one thread per output, and many by
// blocks with a slice each. Blocks leave fp32 (fp64) sums in the workspace, which a second kernel adds. The assignment
// of rows depends only on the shapes, so that sums do not depend on the device.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/row_teams.h"
#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocks = kProcessors * 4;  // as many as a large device runs concurrently

enum class SumPath { few_rows, in_turn, columns, short_rows, long_rows, any };

struct SumPlan {
  SumPath path = SumPath::any;
  int64_t above = 1, rows = 1, columns = 1;
  int64_t step = 1;               // row stride in elements: the number of columns, or of those of a wider x
  int64_t slices = 1, slice = 1;  // number of slices of the rows, and rows per slice
  int teams = 1;                  // per slice, in_turn
};

// Adjacent threads along the columns, each with n of them.
int threads_across(int64_t columns, int n) {
  int across = 1;
  while (across < 32 && static_cast<int64_t>(across) * n < columns) across *= 2;
  return across;
}

// If y has only some columns of x (the attribute "first"), x restricted to those.
tensor::Shape narrow(const tensor::Shape& x, const tensor::Shape& y, const tensor::Attributes& attributes) {
  if (!attributes.has("first")) return x;
  std::vector<tensor::Dim> dims = x.dims();
  dims.back().size = y.size(dims.back().name);
  return tensor::Shape(dims);
}

SumPlan plan_of(const tensor::Type& x, const tensor::Type& y, const tensor::Attributes& attributes) {
  const std::vector<Walked> dims = walk(narrow(x.shape, y.shape, attributes), {y.shape});
  const bool wider = attributes.has("first");
  base::require(!wider || y.shape.rank() == 1, "sum", "columns of {} to {}", to_string(x.shape), to_string(y.shape));
  SumPlan plan;
  // Each dim is either kept (it has a stride in y) or summed.
  const auto kept = [&](size_t d) { return dims[d].strides[0] != 0; };
  const auto dense = [&](size_t d) { return dims[d].strides[0] == 1; };
  const size_t n = dims.size();
  if (n == 1 && kept(0)) {
    plan.columns = dims[0].size;
  } else if (n == 1) {
    plan.rows = dims[0].size;
  } else if (n == 2 && dense(0) && !kept(1)) {
    plan.above = dims[0].size, plan.rows = dims[1].size;
  } else if (n == 2 && !kept(0) && dense(1)) {
    plan.rows = dims[0].size, plan.columns = dims[1].size;
  } else if (n == 3 && dims[0].strides[0] == dims[2].size && !kept(1) && dense(2)) {
    plan.above = dims[0].size, plan.rows = dims[1].size, plan.columns = dims[2].size;
  } else {
    return plan;
  }
  plan.step = wider ? x.shape[x.shape.rank() - 1].size : plan.columns;
  if (plan.above == 1 && plan.columns > 1 && plan.columns <= kMostHeld && !wider && x.dtype != DType::f64 &&
      y.dtype != DType::f64) {
    const RowTurns turns = row_turns(plan.rows, plan.columns, x.dtype);
    plan.path = SumPath::in_turn, plan.slices = turns.chunks, plan.teams = turns.teams;
    return plan;
  }
  int64_t most = 1, want = 1;  // number of slices
  const int wide = static_cast<int>(16 / tensor::size_of(x.dtype));
  if (plan.columns == 1 && !wider && plan.rows <= 1024) {
    plan.path = SumPath::short_rows;
  } else if (plan.columns == 1 && !wider) {
    plan.path = SumPath::long_rows;
    want = quotient_up(kBlocks, plan.above), most = std::min<int64_t>(1024, plan.rows / 4096);
  } else if (plan.rows <= 32) {
    plan.path = SumPath::few_rows;
  } else {
    plan.path = SumPath::columns;
    const int across = threads_across(plan.columns, wide);
    want = kBlocks / (plan.above * quotient_up(plan.columns, static_cast<int64_t>(across) * wide));
    most = std::min<int64_t>(512, plan.rows / (kThreads / across * 8));
  }
  plan.slices = std::clamp<int64_t>(want, 1, std::max<int64_t>(most, 1));
  plan.slice = std::max<int64_t>(1, quotient_up(plan.rows, plan.slices));
  if (plan.path == SumPath::long_rows) plan.slice = quotient_up(plan.slice, wide) * wide;
  plan.slices = std::max<int64_t>(1, quotient_up(plan.rows, plan.slice));
  return plan;
}

// Destination of sums: y, or the workspace if there are several slices.
template <typename A>
struct SumOut {
  A* partial = nullptr;  // [slices outputs]
  std::byte* y = nullptr;
  DType dtype = DType::f32;
  bool add = false;

  __device__ void write(int64_t at, A value) const {
    switch (dtype) {
      case DType::f64:
        return store(reinterpret_cast<double*>(y) + at, value, add);
      case DType::f32:
        return store(reinterpret_cast<float*>(y) + at, value, add);
      case DType::bf16:
        return store(reinterpret_cast<bf16*>(y) + at, value, add);
      default:
        return store(reinterpret_cast<f16*>(y) + at, value, add);
    }
  }
  __device__ void write_slice(int64_t slice, int64_t outputs, int64_t at, A value) const {
    if (partial != nullptr) {
      partial[slice * outputs + at] = value;
    } else {
      write(at, value);
    }
  }
};

// Adds `count` vectors at `at`, at + stride, ..., four loads at a time.
template <typename A, typename X, int N>
__device__ __forceinline__ void add_vectors(A (&sum)[N], const X* at, int64_t stride, int64_t count) {
  constexpr int kTogether = 4;
  for (int64_t i = 0; i < count; i += kTogether, at += kTogether * stride) {
    Packed<X, N> some[kTogether];
    GPU_UNROLL
    for (int k = 0; k < kTogether; ++k) {
      some[k] = {};
      if (i + k < count) some[k].load(at + k * stride);
    }
    GPU_UNROLL
    for (int k = 0; k < kTogether; ++k) GPU_UNROLL
    for (int j = 0; j < N; ++j) sum[j] += static_cast<A>(some[k][j]);
  }
}

// One thread per N outputs.
template <typename X, typename Y, int N>
__global__ void __launch_bounds__(kPieceThreads)
    sum_few_rows(const X* x, Y* y, Divisor vectors, int64_t rows, int64_t step, int64_t pieces, bool add) {
  using A = Sum<X, Y>;
  for (int64_t p = first_piece(); p < pieces; p += all_threads()) {
    const int64_t above = vectors.quotient(p);
    A sum[N] = {};
    add_vectors(sum, x + (above * rows * step + (p - above * vectors.by) * N), step, rows);
    Vec<Y, N> out = {};
    if (add) out = *reinterpret_cast<const Vec<Y, N>*>(y + p * N);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) store(&out[i], sum[i], add);
    *reinterpret_cast<Vec<Y, N>*>(y + p * N) = out;
  }
}

// A block processes some columns of one chunk, with one warp of N columns per lane for each team. Rows are prefetched
// into shared memory if they can be read 16 bytes at a time.
template <int N, int kTeams>
struct TeamsOfBlock {
  static constexpr int kMost = kTeams > 1 ? 32 * kTeams : 256;  // threads
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int threads() { return kMost; }
  __device__ static int size() { return 32; }
  __device__ static int team() { return thread() / 32 % kTeams; }
  __device__ static int column(int) {
    const int across = static_cast<int>(blockDim.x) / (32 * kTeams);
    return ((static_cast<int>(blockIdx.x) * across + thread() / (32 * kTeams)) * 32 + thread() % 32) * N;
  }
};
template <typename X, int N, int kTeams>
__global__ void __launch_bounds__(TeamsOfBlock<N, kTeams>::kMost)
    sum_in_turn(const X* x, SumOut<float> out, SumPlan s) {
  using Own = TeamsOfBlock<N, kTeams>;
  constexpr int kSlots = N > 1 ? 8 : 0;
  using Rows = RowsAhead<X, Own, 1, N, 1, kSlots>;
  __shared__ Packed<X, N> on_their_way[std::max(kSlots, 1) * Own::kMost];
  const int64_t chunk = blockIdx.y;
  const int column = Own::column(0);
  Rows rows = {.from = {x},
               .last = true,
               .row = chunk * kTeams + Own::team(),
               .step = s.slices * kTeams,
               .count = column < s.columns ? s.rows : 0,
               .width = static_cast<int>(s.columns),
               .shared = on_their_way};
  wait_for_kernels_before();
  let_next_begin();
  rows.begin();
  float sum[N] = {};
  for (; rows.row < rows.count; rows.advance()) {
    typename Rows::Row taken;
    rows.take(taken);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) sum[i] += taken[0][0][i];
    rows.refill();
  }
  if constexpr (kTeams > 1) {
    __shared__ float scratch[Own::kMost * N];
    GPU_UNROLL
    for (int i = 0; i < N; ++i) scratch[i * Own::kMost + Own::thread()] = sum[i];
    __syncthreads();
    if (Own::team() != 0) return;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      sum[i] = 0;
      GPU_UNROLL
      for (int team = 0; team < kTeams; ++team) sum[i] += scratch[i * Own::kMost + Own::thread() + team * 32];
    }
  }
  if (column >= s.columns) return;
  GPU_UNROLL
  for (int i = 0; i < N; ++i) out.write_slice(chunk, s.columns, column + i, sum[i]);
}

__global__ void __launch_bounds__(32 * kMostGroups)
    join_turns(const float* partial, SumOut<float> out, int chunks, int columns) {
  __shared__ ChunkSums sums;
  const int first = static_cast<int>(blockIdx.x) * 32;
  wait_for_kernels_before();
  let_next_begin();
  join_columns_of_chunks(partial + first, chunks, columns, columns - first, sums,
                         [&](int i, float sum) { out.write(first + i, sum); });
}

// A block processes some columns of one slice, `wide` of all: `across` adjacent threads have N columns each, and
// further threads other rows.
template <typename X, typename A, int N>
__global__ void __launch_bounds__(kThreads, 4) sum_columns(const X* x, SumOut<A> out, SumPlan s, int across, int wide) {
  __shared__ A scratch[kThreads * N];
  wait_for_kernels_before();
  let_next_begin();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % across, group = thread / across;
  const int groups = kThreads / across;
  const int64_t vectors = s.columns / N;
  const auto block = static_cast<int>(blockIdx.x);
  const int64_t v = block % wide * across + lane, slice = blockIdx.y, above = block / wide;
  const int64_t begin = slice * s.slice, end = begin + s.slice < s.rows ? begin + s.slice : s.rows;
  A sum[N] = {};
  if (v < vectors && begin + group < end)
    add_vectors(sum, x + ((above * s.rows + begin + group) * s.step + v * N), groups * s.step,
                (end - begin - group + groups - 1) / groups);
  GPU_UNROLL
  for (int i = 0; i < N; ++i) scratch[i * kThreads + thread] = sum[i];
  for (int half = groups / 2; half > 0; half /= 2) {
    __syncthreads();
    if (group >= half) continue;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) scratch[i * kThreads + thread] += scratch[i * kThreads + thread + half * across];
  }
  // From here each thread reads only what it has written itself.
  if (group != 0 || v >= vectors) return;
  GPU_UNROLL
  for (int i = 0; i < N; ++i)
    out.write_slice(slice, s.above * s.columns, above * s.columns + v * N + i, scratch[i * kThreads + thread]);
}

// 32 lanes per row.
template <typename X, typename A>
__global__ void __launch_bounds__(kThreads) sum_short_rows(const X* x, SumOut<A> out, int64_t rows, int64_t width) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t row = first_piece() / 32;
  A sum = 0;
  if (row < rows)
    for (int64_t i = lane; i < width; i += 32) sum += static_cast<A>(widen(x[row * width + i]));
  sum = lanes_sum(sum);
  if (row < rows && lane == 0) out.write(row, sum);
}

// One block per slice of a row. `wide`: number of elements read as vectors; the rest follow.
template <typename X, typename A, int N>
__global__ void __launch_bounds__(kThreads) sum_long_rows(const X* x, SumOut<A> out, SumPlan s, int64_t wide) {
  __shared__ A scratch[32];
  wait_for_kernels_before();
  let_next_begin();
  const int thread = static_cast<int>(threadIdx.x);
  const auto block = static_cast<int64_t>(blockIdx.x);
  const int64_t slice = block % s.slices, row = block / s.slices;
  const int64_t begin = slice * s.slice, end = begin + s.slice < wide ? begin + s.slice : wide;
  const X* at = x + row * s.rows;
  A sum[N] = {};
  if (begin + thread * N < end)
    add_vectors(sum, at + begin + thread * N, kThreads * N,
                (end - begin - thread * N + kThreads * N - 1) / (kThreads * N));
  A all = 0;
  GPU_UNROLL
  for (int i = 0; i < N; ++i) all += sum[i];
  if (slice + 1 == s.slices)
    for (int64_t i = wide + thread; i < s.rows; i += kThreads) all += static_cast<A>(widen(at[i]));
  all = block_sum(all, scratch);
  if (thread == 0) out.write_slice(slice, s.above, row, all);
}

// y = sums over the slices; one block per 32 outputs. partial: [slices outputs]
constexpr int kJoinGroups = 32;
template <typename A>
__global__ void __launch_bounds__(32 * kJoinGroups)
    join_slices(const A* partial, SumOut<A> out, int64_t slices, int64_t outputs) {
  __shared__ A scratch[32 * kJoinGroups];
  wait_for_kernels_before();
  let_next_begin();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, group = thread / 32;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  A sum[1] = {};
  if (at < outputs && group < slices)
    add_vectors(sum, partial + group * outputs + at, kJoinGroups * outputs,
                (slices - group + kJoinGroups - 1) / kJoinGroups);
  scratch[thread] = sum[0];
  for (int half = kJoinGroups / 2; half > 0; half /= 2) {
    __syncthreads();
    if (group < half) scratch[thread] += scratch[thread + half * 32];
  }
  if (group == 0 && at < outputs) out.write(at, scratch[thread]);
}

// The dims of y and those that it lacks, with their strides in x.
struct AnyDims {
  Dims kept, summed;
  int64_t kept_strides[kMostDims] = {}, summed_strides[kMostDims] = {};
};

__device__ __forceinline__ int64_t place_of(const Dims& dims, const int64_t (&strides)[kMostDims], int64_t point) {
  int64_t index[kMostDims], place = 0;
  dims.split(point, index);
  GPU_UNROLL
  for (int d = 0; d < kMostDims; ++d)
    if (d < dims.rank) place += index[d] * strides[d];
  return place;
}

// 32 lanes per output.
template <typename X, typename A>
__global__ void __launch_bounds__(kThreads)
    sum_any(const X* x, SumOut<A> out, AnyDims dims, int64_t outputs, int64_t count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t at = first_piece() / 32;
  A sum = 0;
  if (at < outputs) {
    const X* from = x + place_of(dims.kept, dims.kept_strides, at);
    for (int64_t i = lane; i < count; i += 32)
      sum += static_cast<A>(widen(from[place_of(dims.summed, dims.summed_strides, i)]));
  }
  sum = lanes_sum(sum);
  if (at < outputs && lane == 0) out.write(at, sum);
}

void take_dims(const tensor::Shape& over, const tensor::Shape& x, Dims& dims, int64_t (&strides)[kMostDims]) {
  const std::vector<Walked> walked = walk(over, {x});
  dims.rank = static_cast<int>(walked.size());
  for (size_t d = 0; d < walked.size(); ++d) {
    dims.size[d] = Divisor(std::max<int64_t>(walked[d].size, 1));
    strides[d] = walked[d].strides[0];
  }
}

template <typename X, typename A>
void launch_any(const KernelCall& call, const SumOut<A>& out) {
  const tensor::Shape &x = call.ins[0].shape(), &y = call.outs[0].shape();
  std::vector<tensor::Dim> summed;
  for (const tensor::Dim& dim : x)
    if (!y.has(dim.name)) summed.push_back(dim);
  const tensor::Shape lacks(summed);
  AnyDims dims;
  take_dims(y, x, dims.kept, dims.kept_strides);
  take_dims(lacks, x, dims.summed, dims.summed_strides);
  const dim3 blocks(static_cast<unsigned>(quotient_up(y.elements(), kThreads / 32)));
  launch(*call.stream, blocks, dim3(kThreads), 0, sum_any<X, A>, data<X>(call.ins[0]), out, dims, y.elements(),
         lacks.elements());
}

template <typename X, typename Y>
void launch_few_rows(const KernelCall& call, const SumPlan& plan, const X* x) {
  Y* y = data<Y>(call.outs[0]);
  constexpr int kN = std::min(kWide<X>, kWide<Y>);
  const bool wide = plan.columns % kN == 0 && plan.step % kN == 0 && all_wide(x, y);
  const int64_t n = wide ? kN : 1, pieces = plan.above * plan.columns / n;
  launch_pieces(*call.stream, pieces, wide ? sum_few_rows<X, Y, kN> : sum_few_rows<X, Y, 1>, x, y,
                Divisor(plan.columns / n), plan.rows, plan.step, pieces, call.accumulates(0));
}

template <typename X>
void sum_rows_in_turn(const KernelCall& call, const SumPlan& plan) {
  const View& y = call.outs[0];
  const X* const x = data<X>(call.ins[0]);
  SumOut<float> out{.y = y.data, .dtype = y.dtype(), .add = call.accumulates(0)};
  if (plan.slices > 1) out.partial = reinterpret_cast<float*>(call.workspace.data());
  const auto sum = [&]<int N, int kTeams>(std::integral_constant<int, N>, std::integral_constant<int, kTeams>) {
    const int64_t tiles = quotient_up(plan.columns, 32 * N), most = TeamsOfBlock<N, kTeams>::kMost / (32 * kTeams),
                  across = quotient_up(tiles, quotient_up(tiles, most));
    const auto written = plan.slices > 1 ? bytes_at(out.partial, plan.slices * plan.columns * 4) : bytes_of(y);
    launch_overlapping(
        *call.stream, dim3(static_cast<unsigned>(quotient_up(tiles, across)), static_cast<unsigned>(plan.slices)),
        dim3(static_cast<unsigned>(32 * kTeams * across)), 0, {written}, sum_in_turn<X, N, kTeams>, x, out, plan);
  };
  const auto with = [&]<int kTeams>(std::integral_constant<int, kTeams> teams) {
    if (plan.teams != kTeams) return;
    constexpr int kN = kWide<X>;
    if (plan.columns % kN == 0 && all_wide(x)) return sum(std::integral_constant<int, kN>(), teams);
    sum(std::integral_constant<int, 1>(), teams);
  };
  with(std::integral_constant<int, 1>());
  with(std::integral_constant<int, 4>());
  with(std::integral_constant<int, 6>());
  if (plan.slices == 1) return;
  launch_overlapping(*call.stream, dim3(static_cast<unsigned>(quotient_up(plan.columns, 32))),
                     dim3(static_cast<unsigned>(32 * std::min<int64_t>(plan.slices, kMostGroups))), 0, {bytes_of(y)},
                     join_turns, out.partial, out, static_cast<int>(plan.slices), static_cast<int>(plan.columns));
}

template <typename X, typename A>
void sum_as(const KernelCall& call, const SumPlan& plan) {
  const View &x = call.ins[0], &y = call.outs[0];
  const X* const from = data<X>(x) + call.attributes.integer_or("first", 0);
  SumOut<A> out{.y = y.data, .dtype = y.dtype(), .add = call.accumulates(0)};
  if (plan.slices > 1) out.partial = reinterpret_cast<A*>(call.workspace.data());
  const auto blocks = [](int64_t count) { return dim3(static_cast<unsigned>(count)); };
  constexpr int kN = kWide<X>;
  // Slices are added by a kernel that may overlap.
  const int64_t outputs = plan.above * plan.columns;
  const auto begin = [&](dim3 grid, auto kernel, auto... arguments) {
    if (plan.slices == 1) return launch(*call.stream, grid, dim3(kThreads), 0, kernel, arguments...);
    const auto bytes = bytes_at(out.partial, plan.slices * outputs * static_cast<int64_t>(sizeof(A)));
    launch_overlapping(*call.stream, grid, dim3(kThreads), 0, {bytes}, kernel, arguments...);
  };
  switch (plan.path) {
    case SumPath::few_rows:
      dispatch_wide("sum", y.dtype(), [&]<typename Y>(Y) { launch_few_rows<X, Y>(call, plan, from); });
      break;
    case SumPath::columns: {
      const bool wide = plan.columns % kN == 0 && plan.step % kN == 0 && all_wide(from);
      const int n = wide ? kN : 1, across = threads_across(plan.columns, n);
      const int64_t side_by_side = quotient_up(plan.columns, static_cast<int64_t>(across) * n);
      begin(dim3(static_cast<unsigned>(plan.above * side_by_side), static_cast<unsigned>(plan.slices)),
            wide ? sum_columns<X, A, kN> : sum_columns<X, A, 1>, from, out, plan, across,
            static_cast<int>(side_by_side));
      break;
    }
    case SumPath::short_rows:
      launch(*call.stream, blocks(quotient_up(plan.above, kThreads / 32)), dim3(kThreads), 0, sum_short_rows<X, A>,
             from, out, plan.above, plan.rows);
      break;
    case SumPath::long_rows: {
      const bool wide = all_wide(from) && (plan.above == 1 || plan.rows % kN == 0);
      begin(blocks(plan.above * plan.slices), wide ? sum_long_rows<X, A, kN> : sum_long_rows<X, A, 1>, from, out, plan,
            wide ? plan.rows / kN * kN : plan.rows);
      break;
    }
    case SumPath::in_turn:
      throw base::InternalError("sum", "rows in turn have a kernel of their own");
    case SumPath::any:
      launch_any<X, A>(call, out);
  }
  if (plan.slices == 1) return;
  launch_overlapping(*call.stream, blocks(quotient_up(outputs, 32)), dim3(32 * kJoinGroups), 0, {bytes_of(y)},
                     join_slices<A>, out.partial, out, plan.slices, outputs);
}

// y = log(sum of exp(x)) over the parts. x: [parts columns], y: [columns]. Propagates NaN; only -infinity gives
// -infinity.
template <typename T>
__global__ void __launch_bounds__(kPieceThreads)
    logsumexp_parts(const T* x, T* y, int64_t parts, int64_t columns, bool add) {
  for (int64_t i = first_piece(); i < columns; i += all_threads()) {
    float top = widen(x[i]);
    for (int64_t p = 1; p < parts; ++p) {
      const float next = widen(x[p * columns + i]);
      if (top == top && !(next <= top)) top = next;
    }
    float value = top;
    if (fabsf(top) != INFINITY) {
      float sum = 0;
      for (int64_t p = 0; p < parts; ++p) sum += expf(widen(x[p * columns + i]) - top);
      value = top + logf(sum);
    }
    put(y + i, value, add);
  }
}

}  // namespace

int64_t sum_workspace(const KernelShapes& shapes) {
  const tensor::Type &x = *shapes.ins[0], &y = *shapes.outs[0];
  const SumPlan plan = plan_of(x, y, shapes.attributes);
  const bool wide = x.dtype == DType::f64 || y.dtype == DType::f64;
  return plan.slices == 1 ? 0 : plan.slices * y.shape.elements() * (wide ? 8 : 4);
}

void sum(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  if (y.elements() == 0) return;
  const SumPlan plan = plan_of(x.type, y.type, call.attributes);
  if (plan.path == SumPath::in_turn)
    return dispatch("sum", x.dtype(), [&]<typename X>(X) { sum_rows_in_turn<X>(call, plan); });
  dispatch_wide("sum", x.dtype(), [&]<typename X>(X) {
    if (std::is_same_v<X, double> || y.dtype() == DType::f64) {
      sum_as<X, double>(call, plan);
    } else {
      sum_as<X, Sum<X>>(call, plan);
    }
  });
}

void logsumexp(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  base::require(x.dtype() == y.dtype(), "kernel", "logsumexp of {} to {} on a device", name_of(x.dtype()),
                name_of(y.dtype()));
  if (y.elements() == 0) return;
  dispatch("logsumexp", x.dtype(), [&]<typename T>(T) {
    launch_pieces(*call.stream, y.elements(), logsumexp_parts<T>, data<T>(x), data<T>(y), x.shape()[0].size,
                  y.elements(), call.accumulates(0));
  });
}

}  // namespace kintsugi::KINTSUGI_GPU

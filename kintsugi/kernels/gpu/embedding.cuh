// Embedding: rows of a table by token, and its gradient. The gradient sorts positions by the row of their token, stably
// (LSD radix sort), then cuts the sorted list into parts of equal length, whose rows of dy are added in order. Neither
// the order nor the cuts depend on the device, and floats are never added by atomics.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/places.h"

namespace kintsugi::KINTSUGI_GPU {

int64_t embedding_grad_workspace(const KernelShapes&);

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <typename T>
struct Gather {
  const int32_t* tokens;
  const T* table;
  T* y;
  LocalIndex vocab;
  Places places;
  Divisor in_row;  // runs per row
  int64_t runs;
  bool add;
};

// Runs of N elements of y: from the table, or zeros for rows that are not local.
template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads) gather(Gather<T> g) {
  for (int64_t run = first_piece(); run < g.runs; run += all_threads()) {
    const int64_t at = g.in_row.quotient(run), row = g.places.real(at) ? g.vocab.local_of(g.tokens[at]) : -1;
    float x[N] = {};
    if (row >= 0) load_run(x, g.table + (row * g.in_row.by + run - at * g.in_row.by) * N);
    put_run(g.y + run * N, x, g.add);
  }
}

// --- Sort

constexpr int kDigits = 512;             // maximum number of values of a digit
constexpr int kEach = 8;                 // elements per thread
constexpr int kTile = kThreads * kEach;  // elements per block

// One pass. The first derives keys from tokens, with positions 0, 1, ...
struct SortPass {
  const int32_t* tokens;  // null: not the first pass
  const int *keys, *positions;
  int *to_keys, *to_positions;
  int* counts;  // [digit tile]; then the offset of each
  LocalIndex vocab;
  int64_t count;
  int rows, shift, digits;  // digits: a power of 2

  // `rows`, larger than all others, for a token whose row is not local.
  __device__ int key(int64_t i) const {
    if (tokens == nullptr) return keys[i];
    const int64_t row = vocab.local_of(tokens[i]);
    return row < 0 ? rows : static_cast<int>(row);
  }
  __device__ int digit(int key) const { return key >> shift & (digits - 1); }
};

__global__ void __launch_bounds__(kThreads) count_digits(SortPass s) {
  __shared__ int counts[kDigits];
  for (int d = static_cast<int>(threadIdx.x); d < s.digits; d += kThreads) counts[d] = 0;
  __syncthreads();
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kThreads)
    if (begin + i < s.count) atomic_add(&counts[s.digit(s.key(begin + i))], 1);
  __syncthreads();
  for (int d = static_cast<int>(threadIdx.x); d < s.digits; d += kThreads)
    s.counts[static_cast<int64_t>(d) * gridDim.x + blockIdx.x] = counts[d];
}

// Exclusive prefix sum; one block.
__global__ void __launch_bounds__(1024) sum_before(int* numbers, int64_t count) {
  __shared__ int sums[32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, group = thread / 32;
  int before = 0;
  for (int64_t begin = 0; begin < count; begin += 4096) {
    int own[4], all = 0;
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t at = begin + thread * 4 + i;
      own[i] = at < count ? numbers[at] : 0;
      all += own[i];
    }
    int upto = all;  // sum over lanes up to this one
    for (int by = 1; by < 32; by *= 2) {
      const int other = shuffle(upto, lane >= by ? lane - by : lane);
      if (lane >= by) upto += other;
    }
    __syncthreads();
    if (lane == 31) sums[group] = upto;
    __syncthreads();
    int of_groups = sums[lane];
    for (int by = 1; by < 32; by *= 2) {
      const int other = shuffle(of_groups, lane >= by ? lane - by : lane);
      if (lane >= by) of_groups += other;
    }
    const int groups_before = shuffle(of_groups, group == 0 ? 0 : group - 1), whole = shuffle(of_groups, 31);
    int at_own = before + (group == 0 ? 0 : groups_before) + upto - all;
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (const int64_t at = begin + thread * 4 + i; at < count) numbers[at] = at_own;
      at_own += own[i];
    }
    before += whole;
  }
}

// Each warp processes consecutive elements, 32 at a time.
__global__ void __launch_bounds__(kThreads) place_by_digit(SortPass s) {
  __shared__ int counts[kWarps][kDigits];  // of the warp's elements so far; then the destination of the first
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kTile + warp * 32 * kEach + lane;
  int key[kEach], before[kEach];  // before: elements of the same digit earlier in this warp
  uint32_t same[kEach];           // lanes with the same digit
  GPU_UNROLL
  for (int i = 0; i < kEach; ++i) {
    const bool there = begin + i * 32 < s.count;
    key[i] = there ? s.key(begin + i * 32) : 0;
    same[i] = lanes_equal(there ? s.digit(key[i]) : -1);
  }
  for (int d = lane; d < s.digits; d += 32) counts[warp][d] = 0;
  GPU_UNROLL
  for (int i = 0; i < kEach; ++i) {
    warp_barrier();
    const bool there = begin + i * 32 < s.count;
    int& so_far = counts[warp][s.digit(key[i])];
    before[i] = there ? so_far + count_bits(same[i] & ((1u << lane) - 1)) : 0;
    warp_barrier();
    if (there && same[i] >> lane == 1) so_far = before[i] + 1;  // the last of them
  }
  __syncthreads();
  for (int d = static_cast<int>(threadIdx.x); d < s.digits; d += kThreads) {
    int at = s.counts[static_cast<int64_t>(d) * gridDim.x + blockIdx.x];
    for (int w = 0; w < kWarps; ++w) {
      const int own = counts[w][d];
      counts[w][d] = at;
      at += own;
    }
  }
  __syncthreads();
  GPU_UNROLL
  for (int i = 0; i < kEach; ++i) {
    const int64_t from = begin + i * 32;
    if (from >= s.count) continue;
    const int to = counts[warp][s.digit(key[i])] + before[i];
    s.to_keys[to] = key[i];
    s.to_positions[to] = s.tokens == nullptr ? s.positions[from] : static_cast<int>(from);
  }
}

// --- Sums

// keys, positions: sorted. Table rows that span several parts of the list use `partial`: the first entry of a part for
// a row that begins before it, the second for one that continues after it: [part 2 embed].
template <typename T>
struct AddRows {
  const int *keys, *positions;
  const T* dy;
  AnyData dtable;
  float* partial;
  int64_t count, length;  // of the list, and per part
  int64_t embed;
  int rows;
  bool add;

  __device__ int64_t end_of(int64_t part) const { return (part + 1) * length < count ? (part + 1) * length : count; }
};

// One block per part and per blockDim.x * N columns.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) add_rows(AddRows<T> a) {
  const int64_t part = blockIdx.x, begin = part * a.length, end = a.end_of(part);
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * N;
  if (column >= a.embed) return;
  const int key_before = begin > 0 ? a.keys[begin - 1] : -1, key_behind = end < a.count ? a.keys[end] : -1;
  int row = a.rows;
  float sum[N] = {};
  const auto finish = [&] {
    if (row == a.rows) return;
    if (row == key_before) {
      put_run(a.partial + part * 2 * a.embed + column, sum, false);
    } else if (row == key_behind) {
      put_run(a.partial + (part * 2 + 1) * a.embed + column, sum, false);
    } else {
      a.dtable.put(row * a.embed + column, sum, a.add);
    }
  };
  constexpr int kTogether = 4;  // loads in flight
  for (int64_t first = begin; first < end; first += kTogether) {
    int keys[kTogether];
    Vec<T, N> some[kTogether];
    GPU_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      keys[i] = first + i < end ? a.keys[first + i] : a.rows;
      some[i] = {};
      if (keys[i] < a.rows)
        some[i] = *reinterpret_cast<const Vec<T, N>*>(a.dy + a.positions[first + i] * a.embed + column);
    }
    GPU_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (keys[i] != row) {
        finish();
        row = keys[i];
        GPU_UNROLL
        for (int k = 0; k < N; ++k) sum[k] = 0;
      }
      GPU_UNROLL
      for (int k = 0; k < N; ++k) sum[k] += widen(some[i][k]);
    }
  }
  finish();
}

// Adds what continues after a part: one block per part in which such a row begins.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) join_rows(AddRows<T> a) {
  const int64_t part = blockIdx.x, begin = part * a.length, end = a.end_of(part);
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * N;
  if (column >= a.embed || end == a.count) return;
  const int row = a.keys[end];
  if (row == a.rows || a.keys[end - 1] != row || (begin > 0 && a.keys[begin - 1] == row)) return;
  int64_t last = end, beyond = a.count;  // binary search for the last element of this row
  while (beyond - last > 1) {
    const int64_t middle = (last + beyond) / 2;
    (a.keys[middle] == row ? last : beyond) = middle;
  }
  float sum[N];
  load_run(sum, a.partial + (part * 2 + 1) * a.embed + column);
  for (int64_t p = part + 1; p <= last / a.length; ++p) {
    float more[N];
    load_run(more, a.partial + p * 2 * a.embed + column);
    GPU_UNROLL
    for (int k = 0; k < N; ++k) sum[k] += more[k];
  }
  a.dtable.put(row * a.embed + column, sum, a.add);
}

// --- Host side

struct SortPlan {
  int passes = 1, bits = 1;  // bits per digit
  int64_t tiles, parts, length;
  int64_t counts, keys, partial, end;  // workspace offsets in bytes; keys: 2 lists, then positions
};
SortPlan sort_plan(int64_t count, int64_t rows, int64_t embed) {
  base::require(count < (int64_t{1} << 31) && rows < (int64_t{1} << 31) - 1, "embedding_grad",
                "{} tokens of {} on a device", count, rows);
  SortPlan p = {};
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(rows))));
  p.passes = (bits + 8) / 9;
  p.bits = (bits + p.passes - 1) / p.passes;
  p.tiles = (count + kTile - 1) / kTile;
  p.length = std::max<int64_t>(32, (count + 1023) / 1024);
  p.parts = (count + p.length - 1) / p.length;
  const auto line = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const int64_t list = line(count * 4);
  p.keys = line((int64_t{1} << p.bits) * p.tiles * 4);
  p.partial = p.keys + 4 * list;
  p.end = p.partial + p.parts * 2 * embed * 4;
  return p;
}

}  // namespace

int64_t embedding_grad_workspace(const KernelShapes& s) {
  const tensor::Shape& table = s.outs[0]->shape;
  return sort_plan(s.ins[0]->shape.elements(), table[0].size, width(table)).end;
}

// tokens: [batch seq], table: [vocab embed], y: [batch seq embed]
void embedding(const KernelCall& call) {
  const View &tokens = call.ins[0], &table = call.ins[1], &y = call.outs[0];
  if (y.elements() == 0) return;
  dispatch("embedding", table.dtype(), [&]<typename T>(T) {
    base::require(y.dtype() == table.dtype(), "embedding", "{} of {} on a device", name_of(y.dtype()),
                  name_of(table.dtype()));
    Gather<T> g = {};
    g.tokens = data<int32_t>(tokens), g.table = data<T>(table), g.y = data<T>(y);
    g.vocab = local_index(call.index(table.shape()[0].name));
    g.places = places_of("embedding", call, tokens.shape());
    g.add = call.accumulates(0);
    const int64_t embed = width(table.shape());
    const bool wide = embed % kWide<T> == 0 && all_wide(g.table, g.y);
    const int64_t n = wide ? kWide<T> : 1;
    g.in_row = Divisor(embed / n), g.runs = y.elements() / n;
    launch_pieces(*call.stream, g.runs, wide ? gather<T, kWide<T>> : gather<T, 1>, g);
  });
}

// dy: [batch seq embed], dtable: [vocab embed]
void embedding_grad(const KernelCall& call) {
  const View &tokens = call.ins[0], &dy = call.ins[1], &dtable = call.outs[0];
  const bool add = call.accumulates(0);
  if (!add && dtable.elements() > 0) call.stream->zero(dtable.data, dtable.type.bytes());
  if (dtable.elements() == 0 || tokens.elements() == 0) return;
  SortPass s = {};
  s.vocab = local_index(call.index(dtable.shape()[0].name));
  s.count = tokens.elements(), s.rows = static_cast<int>(dtable.shape()[0].size);
  const SortPlan plan = sort_plan(s.count, s.rows, width(dtable.shape()));
  s.digits = 1 << plan.bits;
  const auto at = [&](int64_t bytes) { return reinterpret_cast<int*>(call.workspace.data() + bytes); };
  const int64_t list = (plan.partial - plan.keys) / 4;
  s.counts = at(0);
  for (int pass = 0; pass < plan.passes; ++pass) {
    s.tokens = pass == 0 ? data<int32_t>(tokens) : nullptr;
    s.keys = s.to_keys, s.positions = s.to_positions;
    s.to_keys = at(plan.keys + pass % 2 * list), s.to_positions = at(plan.keys + (2 + pass % 2) * list);
    s.shift = pass * plan.bits;
    const dim3 tiles(static_cast<unsigned>(plan.tiles));
    launch(*call.stream, tiles, dim3(kThreads), 0, count_digits, s);
    launch(*call.stream, dim3(1), dim3(1024), 0, sum_before, s.counts, s.digits * plan.tiles);
    launch(*call.stream, tiles, dim3(kThreads), 0, place_by_digit, s);
  }
  dispatch("embedding_grad", dy.dtype(), [&]<typename T>(T) {
    AddRows<T> a = {};
    a.keys = s.to_keys, a.positions = s.to_positions, a.dy = data<T>(dy);
    a.dtable = any_data("embedding_grad", dtable);
    a.partial = reinterpret_cast<float*>(at(plan.partial));
    a.count = s.count, a.length = plan.length, a.embed = width(dtable.shape()), a.rows = s.rows, a.add = add;
    const bool wide = a.embed % kWide<T> == 0 && all_wide(a.dy, dtable.data);
    const int64_t runs = a.embed / (wide ? kWide<T> : 1), threads = std::min<int64_t>(kThreads, (runs + 31) / 32 * 32);
    const dim3 blocks(static_cast<unsigned>(plan.parts), static_cast<unsigned>((runs + threads - 1) / threads));
    const dim3 block(static_cast<unsigned>(threads));
    launch(*call.stream, blocks, block, 0, wide ? add_rows<T, kWide<T>> : add_rows<T, 1>, a);
    launch(*call.stream, blocks, block, 0, wide ? join_rows<T, kWide<T>> : join_rows<T, 1>, a);
  });
}

}  // namespace kintsugi::KINTSUGI_GPU

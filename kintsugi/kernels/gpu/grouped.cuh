// Matrix products of all experts of a rank in one launch, over slots in use only. Each block numbers the tiles of all
// experts from the counts, and computes them with a stride of the grid's size. The rows of a tile are the slots in use
// of one expert, sample by sample. The order of sums does not depend on the device.
//
// a: [batch expert slot depth], b: [expert depth columns] or [expert columns depth], y: [batch expert slot columns];
// or, for the gradient of a weight, b: [batch expert slot columns], y: [expert depth columns], the sum over all rows of
// a[row] x b[row]. 16-bit types on tensor cores, fp32 by FMAs. A weight may have another type, or int8 codes with a
// scale per expert and last dim.
#include "kintsugi/kernels/expert_operands.h"
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm_tiles.h"
#include "kintsugi/kernels/gpu/slots.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::GroupedIn;

struct Grouped {
  FilledSlots slots;
  const void *a, *b;
  const void* added;   // null: none; as y
  const float* scale;  // null: none
  void* y;
  DType b_dtype, y_dtype;
  int depth, columns;
  bool across;    // the weight is [expert depth columns]
  bool converts;  // the weight has another type than a
  bool accumulate, wide_a, wide_b, wide_y;

  __device__ int64_t weight(int expert) const { return static_cast<int64_t>(expert) * depth * columns; }
  // An element of a weight, at an offset from that of the expert; `along`: its index in the last dim.
  __device__ float weight_at(int expert, int64_t at, int along) const {
    at += weight(expert);
    float x;
    switch (b_dtype) {
      case DType::f32:
        return static_cast<const float*>(b)[at];
      case DType::bf16:
        return widen(static_cast<const bf16*>(b)[at]);
      case DType::f16:
        return widen(static_cast<const f16*>(b)[at]);
      default:
        x = static_cast<const int8_t*>(b)[at];
        return x * scale[static_cast<int64_t>(expert) * (across ? columns : depth) + along];
    }
  }
  // Stores or adds an element of y, with what is added.
  __device__ void put_any(int64_t at, float x) const {
    y_dtype == DType::f32 ? put_as<float>(at, x) : y_dtype == DType::bf16 ? put_as<bf16>(at, x) : put_as<f16>(at, x);
  }
  template <typename C>
  __device__ void put_as(int64_t at, float x) const {
    if (added != nullptr) x += widen(static_cast<const C*>(added)[at]);
    put(static_cast<C*>(y) + at, x, accumulate);
  }
};

// The rows in use of an expert, in shared memory: `before` has the number of those of earlier samples.
struct ExpertRows {
  const FilledSlots& slots;
  int* before;  // [batch + 1]
  int expert = 0, count = 0;

  // All threads of the block take part.
  __device__ void begin(int of) {
    expert = of;
    count = number_tiles(slots.batch, before, [&](int sample) { return slots.filled(sample, of); });
  }
  // Of the operands; -1: none.
  __device__ int row(int i) const {
    if (i >= count) return -1;
    const int sample = expert_of_tile(slots.batch, before, i);
    return (sample * slots.experts + expert) * slots.slots + i - before[sample];
  }
};

// A tile of y.
struct GroupedTile {
  int expert, row, column;
};

// Of row products: those of an expert, column by column. Of weights: all.
template <bool kOfWeights, int kM, int kN>
struct GroupedTiles {
  const Grouped& g;
  int* first;  // shared memory: [expert + 1]
  int count = 0;

  __device__ int high(int expert) const { return ((kOfWeights ? g.depth : g.slots.filled(expert)) + kM - 1) / kM; }
  __device__ int wide() const { return (g.columns + kN - 1) / kN; }
  __device__ void begin() {
    if constexpr (kOfWeights) {
      count = g.slots.experts * high(0) * wide();
    } else {
      count = number_tiles(g.slots.experts, first, [&](int expert) { return high(expert) * wide(); });
    }
  }
  __device__ GroupedTile operator[](int tile) const {
    int expert, of_column;
    if constexpr (kOfWeights) {
      of_column = high(0);
      expert = tile / (of_column * wide());
      tile -= expert * of_column * wide();
    } else {
      expert = expert_of_tile(g.slots.experts, first, tile);
      of_column = (first[expert + 1] - first[expert]) / wide();
      tile -= first[expert];
    }
    return {expert, tile % of_column * kM, tile / of_column * kN};
  }
};

// Shared memory of the numbers of tiles, of rows, and of rows listed.
inline size_t bytes_of_lists(const FilledSlots& s, int listed) {
  return sizeof(int) * static_cast<size_t>(s.experts + 1 + s.batch + 1 + listed);
}

// As copy_part(), for rows at(row) that may be null.
template <int kRows, int kColumns, int kThreads, typename T, typename F>
__device__ __forceinline__ void copy_rows(T* to, int64_t columns, bool wide, const F& at) {
  constexpr int kRuns = kColumns / 8;
  static_assert(kRows * kRuns % kThreads == 0);
  GPU_UNROLL
  for (int i = 0; i < kRows * kRuns; i += kThreads) {
    const int at_run = i + static_cast<int>(threadIdx.x), row = at_run / kRuns, run = at_run % kRuns * 8;
    T* const target = to + row * (kColumns + 8) + run;
    const T* const source = at(row);
    if (wide && source != nullptr && run + 8 <= columns) {
      copy_async_16(target, source + run);
      continue;
    }
    Vec<T, 8> some = {};
    if (source != nullptr)
      for (int j = 0; j < 8; ++j)
        if (run + j < columns) some[j] = source[run + j];
    *reinterpret_cast<Vec<T, 8>*>(target) = some;
  }
}

// As copy_part(), from a weight of another type; the part begins at (row, column) of the expert's matrix, whose rows
// have `step` elements.
template <int kRows, int kColumns, int kThreads, typename T>
__device__ __forceinline__ void copy_converted(T* to, const Grouped& g, int expert, int64_t first_row, int64_t first,
                                               int64_t step, int64_t rows, int64_t columns) {
  constexpr int kRuns = kColumns / 8;
  GPU_ROLL
  for (int i = 0; i < kRows * kRuns; i += kThreads) {
    const int at_run = i + static_cast<int>(threadIdx.x), row = at_run / kRuns, run = at_run % kRuns * 8;
    Vec<T, 8> some = {};
    for (int j = 0; j < 8 && row < rows; ++j)
      if (run + j < columns)
        some[j] = narrow<T>(
            g.weight_at(expert, (first_row + row) * step + first + run + j, static_cast<int>(first + run + j)));
    *reinterpret_cast<Vec<T, 8>*>(to + row * (kColumns + 8) + run) = some;
  }
}

template <typename T, bool kOfWeights, bool kAcrossB, int kM, int kN, int kStages>
__global__ void __launch_bounds__(Shape16<kM, kN>::kThreads, 1) multiply_groups_16(Grouped g) {
  using S = Shape16<kM, kN>;
  constexpr bool kAcrossA = kOfWeights;
  constexpr int kPartA = kPart<kAcrossA, kM>, kPartB = kPart<kAcrossB, kN>;
  GPU_DYNAMIC_SHARED(T, parts);  // kStages of a, then of b
  int* const lists = reinterpret_cast<int*>(parts + kStages * (kPartA + kPartB));
  GroupedTiles<kOfWeights, kM, kN> tiles = {g, lists};
  ExpertRows rows = {g.slots, lists + g.slots.experts + 1};
  // The rows of the tile, or (of weights) those of the steps in flight.
  int* const listed = rows.before + g.slots.batch + 1;
  const int thread = static_cast<int>(threadIdx.x);
  const T *const a = static_cast<const T*>(g.a), *const b = static_cast<const T*>(g.b);
  tiles.begin();
  const int lane = thread % 32, first_row = S::first_row(), first_column = S::first_column();
  for (int at = static_cast<int>(blockIdx.x); at < tiles.count; at += static_cast<int>(gridDim.x)) {
    const GroupedTile tile = tiles[at];
    rows.begin(tile.expert);
    if (kOfWeights && g.accumulate && g.added == nullptr && rows.count == 0) continue;
    for (int i = thread; i < (kOfWeights ? kStages * kDepth : kM); i += S::kThreads)
      listed[i] = rows.row(tile.row * !kOfWeights + i);
    __syncthreads();
    const int64_t columns = g.columns - tile.column, k = kOfWeights ? rows.count : g.depth;
    const auto copy = [&](int64_t step, T* to_a, T* to_b) {
      const int64_t first = step * kDepth;
      if constexpr (kOfWeights) {
        const auto stage = static_cast<int>(step % kStages);
        const int* const of_step = listed + stage * kDepth;
        const auto from = [&](const T* x, int64_t width, int begin) {
          return [=](int row) {
            return of_step[row] < 0 ? nullptr : x + static_cast<int64_t>(of_step[row]) * width + begin;
          };
        };
        copy_rows<kDepth, kM, S::kThreads>(to_a, g.depth - tile.row, g.wide_a, from(a, g.depth, tile.row));
        copy_rows<kDepth, kN, S::kThreads>(to_b, columns, g.wide_b, from(b, g.columns, tile.column));
        // Those of the next step, which copies after the next barrier. The first ones are listed.
        if (step + 1 >= kStages && thread < kDepth)
          listed[(stage + 1) % kStages * kDepth + thread] = rows.row(static_cast<int>(first) + kDepth + thread);
      } else {
        copy_rows<kM, kDepth, S::kThreads>(to_a, k - first, g.wide_a, [&](int row) {
          return listed[row] < 0 ? nullptr : a + static_cast<int64_t>(listed[row]) * g.depth + first;
        });
        if (g.converts) {
          if constexpr (kAcrossB) {
            copy_converted<kDepth, kN, S::kThreads>(to_b, g, tile.expert, first, tile.column, g.columns, k - first,
                                                    columns);
          } else {
            copy_converted<kN, kDepth, S::kThreads>(to_b, g, tile.expert, tile.column, first, g.depth, columns,
                                                    k - first);
          }
        } else if constexpr (kAcrossB) {
          copy_part<kDepth, kN, S::kThreads>(to_b, b + g.weight(tile.expert) + first * g.columns + tile.column,
                                             g.columns, k - first, columns, g.wide_b);
        } else {
          copy_part<kN, kDepth, S::kThreads>(
              to_b, b + g.weight(tile.expert) + static_cast<int64_t>(tile.column) * g.depth + first, g.depth, columns,
              k - first, g.wide_b);
        }
      }
    };
    typename S::Sums sums = {};
    multiply_tiles<T, kAcrossA, kAcrossB, kM, kN, kStages>(parts, (k + kDepth - 1) / kDepth, copy, sums);
    GPU_UNROLL
    for (int i = 0; i < S::kWarpM / 16; ++i) GPU_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int of_tile = first_row + i * 16 + half * 8 + lane / 4, of_y = tile.row + of_tile;
      int64_t begin;  // of the row of y
      if constexpr (kOfWeights) {
        if (of_y >= g.depth) continue;
        begin = g.weight(tile.expert) + static_cast<int64_t>(of_y) * g.columns;
      } else {
        if (listed[of_tile] < 0) continue;
        begin = static_cast<int64_t>(listed[of_tile]) * g.columns;
      }
      GPU_UNROLL
      for (int j = 0; j < S::kWarpN / 8; ++j) {
        const int column = tile.column + first_column + j * 8 + lane % 4 * 2;
        if (column >= g.columns) continue;
        const bool both = column + 1 < g.columns;
        float x = sums[i][j][2 * half], y = sums[i][j][2 * half + 1];
        const int64_t to = begin + column;
        const auto store = [&]<typename C>(C* all) {
          if (g.added != nullptr) {
            x += widen(static_cast<const C*>(g.added)[to]);
            if (both) y += widen(static_cast<const C*>(g.added)[to + 1]);
          }
          put_pair(all + to, x, y, both, g.wide_y, g.accumulate);
        };
        g.y_dtype == DType::f32 ? store(static_cast<float*>(g.y)) : store(static_cast<T*>(g.y));
      }
    }
    copy_async_wait<0>();
    __syncthreads();  // the stages and lists are free
  }
}

// A thread computes 8 rows and 4 columns of a tile of 64 x 64.
constexpr int kGroupedSide = 64, kGroupedDepth = 16, kGroupedThreads = 128;

template <bool kOfWeights>
__global__ void __launch_bounds__(kGroupedThreads) multiply_groups_32(Grouped g) {
  constexpr int kEach = kGroupedSide * kGroupedDepth / kGroupedThreads;
  alignas(16) __shared__ float of_a[2][kGroupedDepth][kGroupedSide + 4];
  alignas(16) __shared__ float of_b[2][kGroupedDepth][kGroupedSide + 4];
  GPU_DYNAMIC_SHARED(int, lists);
  GroupedTiles<kOfWeights, kGroupedSide, kGroupedSide> tiles = {g, lists};
  ExpertRows rows = {g.slots, lists + g.slots.experts + 1};
  int* const listed = rows.before + g.slots.batch + 1;  // of the tile, or (of weights) of two steps
  const int thread = static_cast<int>(threadIdx.x);
  const float *const a = static_cast<const float*>(g.a), *const b = static_cast<const float*>(g.b);
  tiles.begin();
  const int own_row = thread / 16 * 8, own_column = thread % 16 * 4;
  for (int at = static_cast<int>(blockIdx.x); at < tiles.count; at += static_cast<int>(gridDim.x)) {
    const GroupedTile tile = tiles[at];
    rows.begin(tile.expert);
    if (kOfWeights && g.accumulate && g.added == nullptr && rows.count == 0) continue;
    for (int i = thread; i < (kOfWeights ? 2 * kGroupedDepth : kGroupedSide); i += kGroupedThreads)
      listed[i] = rows.row(tile.row * !kOfWeights + i);
    __syncthreads();
    const int k = kOfWeights ? rows.count : g.depth;
    // Adjacent threads copy adjacent memory: along k, or across rows or columns.
    const bool along_a = !kOfWeights, along_b = !kOfWeights && !g.across;
    const auto place_of = [&](bool along, int i, int& across, int& of_k) {
      const int n = thread + i * kGroupedThreads;
      across = along ? n / kGroupedDepth : n % kGroupedSide;
      of_k = along ? n % kGroupedDepth : n / kGroupedSide;
    };
    float next_a[kEach], next_b[kEach];
    const auto load = [&](int first) {
      GPU_UNROLL
      for (int i = 0; i < kEach; ++i) {
        int across, of_k;
        place_of(along_a, i, across, of_k);
        if constexpr (kOfWeights) {
          const int row = listed[(first / kGroupedDepth % 2) * kGroupedDepth + of_k];
          next_a[i] =
              row >= 0 && tile.row + across < g.depth ? a[static_cast<int64_t>(row) * g.depth + tile.row + across] : 0;
        } else {
          const int row = listed[across];
          next_a[i] = row >= 0 && first + of_k < k ? a[static_cast<int64_t>(row) * g.depth + first + of_k] : 0;
        }
        place_of(along_b, i, across, of_k);
        const int column = tile.column + across;
        if constexpr (kOfWeights) {
          const int row = listed[(first / kGroupedDepth % 2) * kGroupedDepth + of_k];
          next_b[i] = row >= 0 && column < g.columns ? b[static_cast<int64_t>(row) * g.columns + column] : 0;
        } else {
          const int64_t from = first + of_k;
          next_b[i] = column >= g.columns || from >= k ? 0
                      : g.across                       ? g.weight_at(tile.expert, from * g.columns + column, column)
                                 : g.weight_at(tile.expert, static_cast<int64_t>(column) * g.depth + from,
                                               static_cast<int>(from));
        }
      }
    };
    float sums[8][4] = {};
    if (k > 0) load(0);
    int stage = 0;
    for (int first = 0; first < k; first += kGroupedDepth, stage ^= 1) {
      GPU_UNROLL
      for (int i = 0; i < kEach; ++i) {
        int across, of_k;
        place_of(along_a, i, across, of_k);
        of_a[stage][of_k][across] = next_a[i];
        place_of(along_b, i, across, of_k);
        of_b[stage][of_k][across] = next_b[i];
      }
      __syncthreads();
      if (first + kGroupedDepth < k) load(first + kGroupedDepth);
      // Those after the next step, in place of those of this one, which are loaded.
      if (kOfWeights && thread < kGroupedDepth)
        listed[(first / kGroupedDepth % 2) * kGroupedDepth + thread] = rows.row(first + 2 * kGroupedDepth + thread);
      GPU_UNROLL
      for (int i = 0; i < kGroupedDepth; ++i) {
        const auto x = *reinterpret_cast<const Vec<float, 4>*>(&of_a[stage][i][own_row]);
        const auto z = *reinterpret_cast<const Vec<float, 4>*>(&of_a[stage][i][own_row + 4]);
        const auto y = *reinterpret_cast<const Vec<float, 4>*>(&of_b[stage][i][own_column]);
        GPU_UNROLL
        for (int r = 0; r < 8; ++r) GPU_UNROLL
        for (int c = 0; c < 4; ++c) sums[r][c] += (r < 4 ? x[r % 4] : z[r % 4]) * y[c];
      }
    }
    GPU_UNROLL
    for (int r = 0; r < 8; ++r) {
      const int of_tile = own_row + r;
      int64_t begin = -1;
      if constexpr (kOfWeights) {
        if (tile.row + of_tile < g.depth)
          begin = g.weight(tile.expert) + static_cast<int64_t>(tile.row + of_tile) * g.columns;
      } else if (listed[of_tile] >= 0) {
        begin = static_cast<int64_t>(listed[of_tile]) * g.columns;
      }
      GPU_UNROLL
      for (int c = 0; c < 4; ++c)
        if (const int column = tile.column + own_column + c; begin >= 0 && column < g.columns)
          g.put_any(begin + column, sums[r][c]);
    }
    __syncthreads();  // the stages and lists are free
  }
}

int64_t most_tiles(const Grouped& g, bool of_weights, int rows, int columns) {
  const int64_t all = of_weights ? g.depth : static_cast<int64_t>(g.slots.batch) * g.slots.slots;
  return g.slots.experts * quotient_up(all, rows) * quotient_up(g.columns, columns);
}

template <typename... Parameters>
void launch_groups(const KernelCall& call, const Grouped& g, int64_t tiles, int threads, size_t shared,
                   void (*kernel)(Parameters...)) {
  base::require(tiles < (int64_t{1} << 31), "grouped", "{} tiles", tiles);
  const int64_t blocks = std::min(tiles, blocks_at_one_time(kernel, threads));
  launch(*call.stream, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), shared, kernel, g);
}

template <typename T, bool kOfWeights, bool kAcrossB, int kSide>
void launch_groups_16(const KernelCall& call, const Grouped& g) {
  constexpr int kStages = kSide == 128 ? 3 : 4;
  constexpr size_t kBytes = sizeof(T) * kStages * (kPart<kOfWeights, kSide> + kPart<kAcrossB, kSide>);
  launch_groups(call, g, most_tiles(g, kOfWeights, kSide, kSide), Shape16<kSide, kSide>::kThreads,
                kBytes + bytes_of_lists(g.slots, kOfWeights ? kStages * kDepth : kSide),
                multiply_groups_16<T, kOfWeights, kAcrossB, kSide, kSide, kStages>);
}

// Large tiles where the mean expert fills some and they occupy the device.
template <typename T, bool kOfWeights, bool kAcrossB>
void choose_groups_16(const KernelCall& call, const Grouped& g) {
  const double filled = call.attributes.number("filled") * static_cast<double>(g.slots.batch) * g.slots.slots;
  const double high = kOfWeights ? g.depth : filled;
  const bool large = high >= 96 && g.columns >= 96 &&
                     g.slots.experts * (high / 128) * (g.columns / 128.0) >= static_cast<double>(kProcessors) / 2;
  large ? launch_groups_16<T, kOfWeights, kAcrossB, 128>(call, g)
        : launch_groups_16<T, kOfWeights, kAcrossB, 64>(call, g);
}

}  // namespace

void grouped(const KernelCall& call) {
  const View &a = call.ins[GroupedIn::kA], &b = call.ins[GroupedIn::kB], &scale = call.ins[GroupedIn::kScale],
             &added = call.ins[GroupedIn::kAdded], &y = call.outs[0];
  const bool of_weights = y.shape().rank() == 3;
  const auto fits = [](const View& v) {
    return v.shape().rank() == 4 && v.shape()[1].name == "expert" && v.shape()[2].name == "slot";
  };
  base::require(fits(a) && (of_weights ? fits(b) : fits(y) && b.shape().rank() == 3), "grouped", "{} by {} on a device",
                to_string(a.shape()), to_string(b.shape()));
  Grouped g = {.slots = filled_slots(call, a.shape(), call.ins[GroupedIn::kCounts]),
               .a = a.data,
               .b = b.data,
               .added = added.data,
               .scale = data<float>(scale),
               .y = y.data,
               .b_dtype = b.dtype(),
               .y_dtype = y.dtype(),
               .depth = static_cast<int>(a.shape()[3].size),
               .columns = static_cast<int>(of_weights ? b.shape()[3].size : y.shape()[3].size),
               .across = true,
               .converts = b.dtype() != a.dtype(),
               .accumulate = call.accumulates(0),
               .wide_a = false,
               .wide_b = false,
               .wide_y = false};
  if (!of_weights) g.across = b.shape()[1].name == a.shape()[3].name;
  base::require((b.dtype() == DType::i8) == (scale.data != nullptr) && (!of_weights || b.dtype() == a.dtype()),
                "grouped", "{} by {} on a device", name_of(a.dtype()), name_of(b.dtype()));
  base::require(y.dtype() == a.dtype() || y.dtype() == DType::f32 || a.dtype() == DType::f32, "grouped",
                "{} of {} on a device", name_of(y.dtype()), name_of(a.dtype()));
  base::require(added.data == nullptr || added.dtype() == y.dtype(), "grouped", "{} added to {} on a device",
                name_of(added.dtype()), name_of(y.dtype()));
  KINTSUGI_GPU::dispatch("grouped", a.dtype(), [&]<typename T>(T) {
    if constexpr (sizeof(T) == 4) {
      const size_t lists = bytes_of_lists(g.slots, of_weights ? 2 * kGroupedDepth : kGroupedSide);
      launch_groups(call, g, most_tiles(g, of_weights, kGroupedSide, kGroupedSide), kGroupedThreads, lists,
                    of_weights ? multiply_groups_32<true> : multiply_groups_32<false>);
    } else {
      const int b_row = of_weights || g.across ? g.columns : g.depth;
      g.wide_a = all_wide(g.a) && g.depth % 8 == 0;
      g.wide_b = all_wide(g.b) && b_row % 8 == 0;
      g.wide_y = reinterpret_cast<uintptr_t>(y.data) % static_cast<uintptr_t>(2 * tensor::size_of(y.dtype())) == 0 &&
                 g.columns % 2 == 0;
      of_weights ? choose_groups_16<T, true, true>(call, g)
      : g.across ? choose_groups_16<T, false, true>(call, g)
                 : choose_groups_16<T, false, false>(call, g);
    }
  });
}

}  // namespace kintsugi::KINTSUGI_GPU

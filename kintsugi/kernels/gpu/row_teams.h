// Shared by kernels over rows (norms, sums): teams of threads that hold a row, prefetching of rows to shared memory,
// and the order of sums over all rows.
#pragma once

#include <algorithm>

#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

constexpr int kMostThreads = 512;  // maximum block size if a block holds a row, with 8 or 16 elements per thread
constexpr int kMostHeld = kMostThreads * 16;
// Warps per block in gradients and sums: prefetched rows and the teams' sums must fit in the shared memory that every
// device has. bytes: per thread and row.
constexpr int teams_of(int bytes) {
  return bytes <= 48 ? 6 : 4;
}

// Threads per multiprocessor in gradients by blocks: as many as registers allow for `each` elements per thread.
constexpr int threads_of_processor(int each) {
  return each == 8 ? 672 : 512;
}

// The threads that hold a row, with kRuns runs of N adjacent elements each.
template <int kRuns, int N, bool kByLanes>
struct Team {
  static constexpr int kEach = kRuns * N;
  static constexpr int kCount = kByLanes ? teams_of(kRuns * 16) : 1;                  // teams per block
  static constexpr int kMost = kByLanes ? 32 * kCount : threads_of_processor(kEach);  // maximum block size
  static constexpr int kWarps = kByLanes ? 1 : kMostThreads / 32;

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int threads() { return kByLanes ? kMost : static_cast<int>(blockDim.x); }  // per block
  __device__ static int number() { return kByLanes ? static_cast<int>(threadIdx.x) / 32 : 0; }
  __device__ static int place() {
    return kByLanes ? static_cast<int>(threadIdx.x) % 32 : static_cast<int>(threadIdx.x);
  }
  __device__ static int size() { return kByLanes ? 32 : static_cast<int>(blockDim.x); }
  // Column of run r of this thread: adjacent threads have adjacent runs.
  __device__ static int column(int r) { return (r * size() + place()) * N; }

  // Sum over the team, in all of its threads. scratch: two slots for all warps, used alternately, so that one barrier
  // suffices.
  template <int K>
  __device__ static Sums<K> sum(Sums<K> x, Sums<K>* scratch, int turn) {
    x = lanes_sum(x);
    if constexpr (!kByLanes) {
      const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
      Sums<K>* const to = scratch + turn % 2 * kWarps;
      if (lane == 0) to[warp] = x;
      __syncthreads();
      x = {};
      if (lane < static_cast<int>(blockDim.x) / 32) x = to[lane];
      x = lanes_sum(x);
    }
    return x;
  }
};

// The rows of a team, `step` apart, of kValues values; kSlots rows are prefetched into shared memory, which takes no
// registers. A thread reads only what it has fetched itself, so that no barrier is needed. Without slots a row is
// loaded on use.
template <typename T, typename Own, int kRuns, int N, int kValues, int kSlots>
struct RowsAhead {
  using Row = Packed<T, N>[kValues][kRuns];

  const T* from[kValues];
  bool last;  // false: the last value is absent and reads as zeros
  int64_t row, step, count;
  int width;
  Packed<T, N>* shared;
  int64_t at = row * width + Own::column(0);  // offset of this thread's first run of the row
  int slot = 0;

  __device__ __forceinline__ Packed<T, N>* place(int s, int value, int r) const {
    return shared + ((s * kValues + value) * kRuns + r) * Own::threads() + Own::thread();
  }
  // For any row.
  __device__ __forceinline__ bool has(int value, int r) const {
    return (value + 1 < kValues || last) && Own::column(r) < width;
  }
  // Starts copying the row `behind` rows ahead, if it exists.
  __device__ __forceinline__ void fetch(int s, int behind) const {
    if constexpr (kSlots > 0) {
      if (row + behind * step < count) {
        const int64_t begin = at + behind * step * width;
        GPU_UNROLL
        for (int r = 0; r < kRuns; ++r) {
          if (Own::column(r) >= width) break;
          GPU_UNROLL
          for (int v = 0; v < kValues; ++v)
            if (has(v, r)) copy_async_16(place(s, v, r), from[v] + begin + r * Own::size() * N);
        }
      }
      copy_async_commit();
    }
  }
  // Prefetches the first rows. What is never fetched is zero.
  __device__ __forceinline__ void begin() const {
    GPU_UNROLL
    for (int s = 0; s < kSlots; ++s) {
      GPU_UNROLL
      for (int v = 0; v < kValues; ++v) GPU_UNROLL
      for (int r = 0; r < kRuns; ++r)
        if (!has(v, r)) *place(s, v, r) = {};
      fetch(s, s);
    }
  }
  // Zeros if there is no row.
  __device__ __forceinline__ void take(Row& to) const {
    if constexpr (kSlots > 0) copy_async_wait<kSlots - 1>();
    GPU_UNROLL
    for (int v = 0; v < kValues; ++v) GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) to[v][r] = {};
    if (row >= count) return;
    GPU_UNROLL
    for (int v = 0; v < kValues; ++v) GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      if constexpr (kSlots > 0) {
        to[v][r] = *place(slot, v, r);
      } else {
        if (has(v, r)) to[v][r].load(from[v] + at + r * Own::size() * N);
      }
    }
  }
  // Reuses the slot of the row taken, once it has been consumed.
  __device__ __forceinline__ void refill() {
    fetch(slot, kSlots);
    if (++slot >= kSlots) slot = 0;
  }
  __device__ __forceinline__ void advance() { row += step, at += step * width; }
};

// By bytes per thread and row: the rows to prefetch, giving about 64 KiB in flight per multiprocessor with one row per
// block; and, for gradients, the blocks per multiprocessor, as many as registers allow.
#if defined(__HIP__)
constexpr bool kLongRowsAhead = false;  // blocks have 64 KiB of shared memory, which the weights of a long row fill
#else
constexpr bool kLongRowsAhead = true;
#endif
constexpr int forward_slots(int bytes) {
  return kLongRowsAhead ? 64 / bytes : 0;
}
template <typename Team>
constexpr int backward_blocks() {
  return Team::kCount == 1 ? 1 : 2;
}
// For warps, whose rows are all in flight together: as few as saturate memory, since at the end the prefetched rows are
// processed with nothing left to read.
template <typename Team>
constexpr int backward_slots(int bytes) {
  return Team::kCount > 1 ? (bytes <= 32 ? 2 : 1) : kLongRowsAhead ? 32 / bytes : 0;
}

// Of u, a row minus its pivot; the normalized row is (u - shift) * inverse.
struct Spread {
  float shift, inverse;
};
// From the sums of u and of its squares; share: 1 / width.
__device__ __forceinline__ Spread spread_of(float sum, float squares, bool shifts, float share, float epsilon) {
  const float shift = shifts ? sum * share : 0, variance = squares * share - shift * shift;
  return {shift, rsqrtf((variance < 0 ? 0 : variance) + epsilon)};
}

template <typename T, int N>
__device__ __forceinline__ float pivot_of(const Packed<T, N>& first, bool shifts) {
  float sum = 0;
  GPU_UNROLL
  for (int i = 0; i < N; ++i) sum += first[i];
  return shifts ? sum / N : 0;
}

// Accumulates a run minus the pivot, and its squares.
template <typename T, int N>
__device__ __forceinline__ void add_behind(float pivot, const Packed<T, N>& x, float& sum, float& squares) {
  GPU_UNROLL
  for (int i = 0; i < N; ++i) {
    const float u = x[i] - pivot;
    sum += u;
    squares += u * u;
  }
}

// Copies weights plus `offset` to shared memory, zero-padded to `across`; `from` may be absent.
__device__ __forceinline__ void fetch_weights(float* to, const AnyData& from, float offset, int width, int across) {
  for (int i = static_cast<int>(threadIdx.x) * 4; i < across; i += static_cast<int>(blockDim.x) * 4) {
    float some[4] = {};
    if (i < width && from.data != nullptr) {
      from.load(some, i);
      GPU_UNROLL
      for (int k = 0; k < 4; ++k) some[k] += offset;
    }
    put_run(to + i, some, false);
  }
}

// The team that holds rows of a width: its threads, and elements per thread; 0: rows are too long.
struct TeamSize {
  bool by_lanes = false;
  int each = 0, threads = 0;
};
inline TeamSize team_size(int64_t width, DType dtype) {
  const bool narrow = tensor::size_of(dtype) == 2;  // two elements per register
  for (const int each : {8, 16, 24, 32})
    if (width <= 32 * each && (narrow || each < 32)) return {true, each, 32};
  const int each = width <= (narrow ? 2048 : 4096) ? 8 : 16;
  return {false, each, static_cast<int>((width + 32 * each - 1) / (32 * each) * 32)};
}

// The order of a sum over all rows, which depends only on the shape: the teams of all chunks take rows in turn and each
// sums its own, then a chunk adds its teams' sums, then chunks are added. Gradients of norms and column sums thus have
// the same bits.
struct RowTurns {
  int64_t chunks = 1;
  int teams = 1;  // per chunk
};
// As many chunks as a large device runs concurrently for norm gradients, if rows are held; fewer for few rows.
inline RowTurns row_turns(int64_t count, int64_t width, DType dtype) {
  const TeamSize size = team_size(width, dtype);
  const int64_t of_processor = size.by_lanes ? 2 : std::max(1, threads_of_processor(size.each) / size.threads);
  return {.chunks = std::clamp<int64_t>(count / 8, 1, kProcessors * of_processor),
          .teams = size.by_lanes ? teams_of(size.each * static_cast<int>(tensor::size_of(dtype))) : 1};
}

// Called by a block with one warp per group of chunks, taken in turn: sums 32 columns over all chunks, which are
// `apart` elements apart. Calls put(column, sum) for at most `columns` columns.
constexpr int kMostGroups = 32;
using ChunkSums = float[kMostGroups][33];  // padded to avoid bank conflicts
template <typename Put>
__device__ __forceinline__ void join_columns_of_chunks(const float* partial, int chunks, int64_t apart, int columns,
                                                       ChunkSums& sums, const Put& put) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const int groups = static_cast<int>(blockDim.x) / 32;
  constexpr int kTogether = 13;  // loads in flight: all, for up to three chunks per multiprocessor
  float sum = 0;
  if (lane < columns)
    for (int first = group; first < chunks; first += kTogether * groups) {
      float some[kTogether];
      GPU_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        const int c = first + k * groups;
        some[k] = c < chunks ? partial[c * apart + lane] : 0;
      }
      GPU_UNROLL
      for (int k = 0; k < kTogether; ++k) sum += some[k];
    }
  sums[group][lane] = sum;
  __syncthreads();
  for (int i = group; i < 32; i += groups) {
    const float total = lanes_sum(lane < groups ? sums[lane][i] : 0.0f);
    if (lane == 0 && i < columns) put(i, total);
  }
}

}  // namespace kintsugi::KINTSUGI_GPU

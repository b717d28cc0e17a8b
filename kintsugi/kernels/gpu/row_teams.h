// What kernels that go through rows share, of norms and of sums: the teams of threads that have a row each, rows on
// their way to shared memory, and the order in which sums over all rows are taken.
#pragma once

#include <algorithm>

#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

constexpr int kMostThreads = 512;  // of a block that holds its row, with 8 or 16 elements each
constexpr int kMostHeld = kMostThreads * 16;
// Of a block whose teams are 32 lanes, in gradients and sums: with what is on its way, and with the teams' sums, it
// takes no more shared memory than every device has. bytes: that a thread has of a row.
constexpr int teams_of(int bytes) {
  return bytes <= 48 ? 6 : 4;
}

// Of a processor, in gradients by blocks: by the elements of a thread, as many as its registers hold.
constexpr int threads_of_processor(int each) {
  return each == 8 ? 672 : 512;
}

// The threads that have a row, and what each has of it: kRuns runs of N neighbours.
template <int kRuns, int N, bool kByLanes>
struct Team {
  static constexpr int kEach = kRuns * N;
  static constexpr int kCount = kByLanes ? teams_of(kRuns * 16) : 1;                  // of a block
  static constexpr int kMost = kByLanes ? 32 * kCount : threads_of_processor(kEach);  // no block has more threads
  static constexpr int kWarps = kByLanes ? 1 : kMostThreads / 32;

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int threads() { return kByLanes ? kMost : static_cast<int>(blockDim.x); }  // of a block
  __device__ static int number() { return kByLanes ? static_cast<int>(threadIdx.x) / 32 : 0; }
  __device__ static int place() {
    return kByLanes ? static_cast<int>(threadIdx.x) % 32 : static_cast<int>(threadIdx.x);
  }
  __device__ static int size() { return kByLanes ? 32 : static_cast<int>(blockDim.x); }
  // Where run r of this thread begins: neighbouring threads have neighbouring runs.
  __device__ static int column(int r) { return (r * size() + place()) * N; }

  // Over the team, in all of its threads. scratch: two places for all warps, used in turn, so that one barrier is
  // enough.
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

// The rows of a team, each `step` behind the one before, of kValues values; kSlots rows are on their way to shared
// memory, which takes no registers. A thread takes what it has fetched itself, so that only it waits. Without slots a
// row is fetched when it is taken.
template <typename T, typename Own, int kRuns, int N, int kValues, int kSlots>
struct RowsAhead {
  using Row = Packed<T, N>[kValues][kRuns];

  const T* from[kValues];
  bool last;  // false: there is nothing of the last value, which is zeros
  int64_t row, step, count;
  int width;
  Packed<T, N>* shared;
  int64_t at = row * width + Own::column(0);  // where this thread's first run of the row is
  int slot = 0;

  __device__ __forceinline__ Packed<T, N>* place(int s, int value, int r) const {
    return shared + ((s * kValues + value) * kRuns + r) * Own::threads() + Own::thread();
  }
  // Of any row.
  __device__ __forceinline__ bool has(int value, int r) const {
    return (value + 1 < kValues || last) && Own::column(r) < width;
  }
  // Begins to copy the row that is so many behind this one, if it is there.
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
  // The first rows. What is never fetched is zeros.
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
  // To the place of what was taken, once that was used.
  __device__ __forceinline__ void refill() {
    fetch(slot, kSlots);
    if (++slot >= kSlots) slot = 0;
  }
  __device__ __forceinline__ void advance() { row += step, at += step * width; }
};

// By the bytes that a thread has of a row: the rows that are under way, so that a processor has some 64 KiB of them of
// blocks that have a row each; and, of gradients, the blocks of a processor, as many as its registers hold.
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
// Of lanes, whose rows are all on their way at one time, as few as keep a processor's memory busy: at the end what is
// on its way is computed with nothing left to read.
template <typename Team>
constexpr int backward_slots(int bytes) {
  return Team::kCount > 1 ? (bytes <= 32 ? 2 : 1) : kLongRowsAhead ? 32 / bytes : 0;
}

// Of u, a row less its pivot: (u - shift) * inverse is what is asked for.
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

// Adds what is left of a run behind the pivot, and its squares.
template <typename T, int N>
__device__ __forceinline__ void add_behind(float pivot, const Packed<T, N>& x, float& sum, float& squares) {
  GPU_UNROLL
  for (int i = 0; i < N; ++i) {
    const float u = x[i] - pivot;
    sum += u;
    squares += u * u;
  }
}

// To shared memory, with zeros behind it: what is added to `offset`, or nothing.
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

// Which team holds rows of a width: its threads, and the elements of each; none: rows are too long.
struct TeamSize {
  bool by_lanes = false;
  int each = 0, threads = 0;
};
inline TeamSize team_size(int64_t width, DType dtype) {
  const bool narrow = tensor::size_of(dtype) == 2;  // with twice as many elements in a register
  for (const int each : {8, 16, 24, 32})
    if (width <= 32 * each && (narrow || each < 32)) return {true, each, 32};
  const int each = width <= (narrow ? 2048 : 4096) ? 8 : 16;
  return {false, each, static_cast<int>((width + 32 * each - 1) / (32 * each) * 32)};
}

// In which order a sum over all rows is taken, which depends on the shape alone: the teams of all chunks take rows in
// turn and each adds up its own, then a chunk adds up its teams', then chunks are joined. Gradients of norms and sums
// of columns have the same bits so.
struct RowTurns {
  int64_t chunks = 1;
  int teams = 1;  // of a chunk
};
// As many chunks as a large device runs of gradients of norms at one time, where rows are held, but not for few rows.
inline RowTurns row_turns(int64_t count, int64_t width, DType dtype) {
  const TeamSize size = team_size(width, dtype);
  const int64_t of_processor = size.by_lanes ? 2 : std::max(1, threads_of_processor(size.each) / size.threads);
  return {.chunks = std::clamp<int64_t>(count / 8, 1, kProcessors * of_processor),
          .teams = size.by_lanes ? teams_of(size.each * static_cast<int>(tensor::size_of(dtype))) : 1};
}

// By a block of 32 lanes for each group of chunks, of which a group takes its own in turn: the sums of 32 columns over
// all chunks, which are `apart` elements from one to the next. put(column, sum), of `columns` at most.
constexpr int kMostGroups = 32;
using ChunkSums = float[kMostGroups][33];  // a column of it is in as many banks as it has rows
template <typename Put>
__device__ __forceinline__ void join_columns_of_chunks(const float* partial, int chunks, int64_t apart, int columns,
                                                       ChunkSums& sums, const Put& put) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const int groups = static_cast<int>(blockDim.x) / 32;
  constexpr int kTogether = 13;  // loads under way: all, of as many chunks as three times the processors
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

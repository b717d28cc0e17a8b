// What kernels of norms share: the teams of threads that have a row each, and rows on their way to shared memory.
#pragma once

#include <algorithm>

#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

constexpr int kMostThreads = 512;  // of a block that holds its row, with 8 or 16 elements each
constexpr int kMostHeld = kMostThreads * 16;
constexpr int kTeams = 4;  // of a block whose teams are 32 lanes

// The threads that have a row, and what each has of it: kRuns runs of N neighbours.
template <int kRuns, int N, bool kByLanes>
struct Team {
  static constexpr int kEach = kRuns * N;
  static constexpr int kCount = kByLanes ? kTeams : 1;                 // of a block
  static constexpr int kMost = kByLanes ? 32 * kTeams : kMostThreads;  // threads of a block
  static constexpr int kWarps = kByLanes ? 1 : kMostThreads / 32;

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

// Rows of kValues values, kSlots of them on their way to shared memory, which takes no registers. A thread takes what
// it has fetched itself, so that only it waits. Without slots a row is fetched when it is taken.
template <typename T, typename Own, int kRuns, int N, int kValues, int kSlots>
struct RowsAhead {
  using Row = Packed<T, N>[kValues][kRuns];
  static constexpr int kAhead = kSlots;

  const T* from[kValues];  // null: zeros
  int64_t count;
  int width;
  Packed<T, N>* shared;
  int slot = 0;

  __device__ __forceinline__ Packed<T, N>* place(int at, int value, int r) const {
    return shared + ((at * kValues + value) * kRuns + r) * static_cast<int>(blockDim.x) + threadIdx.x;
  }
  // Calls f(value, r, from) for what this thread has of a row.
  template <typename F>
  __device__ __forceinline__ void each(int64_t row, const F& f) const {
    if (row >= count) return;
    GPU_UNROLL
    for (int v = 0; v < kValues; ++v) GPU_UNROLL
    for (int r = 0; r < kRuns; ++r)
      if (from[v] != nullptr && Own::column(r) < width) f(v, r, from[v] + row * width + Own::column(r));
  }
  __device__ __forceinline__ void fetch(int64_t row, int at) const {
    if constexpr (kSlots > 0) {
      each(row, [&](int v, int r, const T* x) { copy_async_16(place(at, v, r), x); });
      copy_async_commit();
    }
  }
  // The first rows: that of the first slot, and others a `step` apart.
  __device__ __forceinline__ void begin(int64_t row, int64_t step) const {
    GPU_UNROLL
    for (int s = 0; s < kSlots; ++s) fetch(row + s * step, s);
  }
  // The next row, with zeros behind it and behind the last.
  __device__ __forceinline__ void take(Row& to, int64_t row) const {
    if constexpr (kSlots > 0) copy_async_wait<kSlots - 1>();
    GPU_UNROLL
    for (int v = 0; v < kValues; ++v) GPU_UNROLL
    for (int r = 0; r < kRuns; ++r) to[v][r] = {};
    each(row, [&](int v, int r, const T* x) {
      if constexpr (kSlots > 0) {
        to[v][r] = *place(slot, v, r);
      } else {
        to[v][r].load(x);
      }
    });
  }
  // To the place of the row that was taken, once that was used: the row kSlots behind it.
  __device__ __forceinline__ void refill(int64_t row) {
    fetch(row, slot);
    if (++slot >= kSlots) slot = 0;
  }
};

// By the bytes that a thread has of a row: the rows that are under way, so that a processor has some 64 KiB of them,
// and a block no more than every device has; and, of gradients, the blocks of a processor, as many as its registers
// hold.
#if defined(__HIP__)
constexpr bool kLongRowsAhead = false;  // blocks have 64 KiB of shared memory, which the weights of a long row fill
#else
constexpr bool kLongRowsAhead = true;
#endif
constexpr int forward_slots(int bytes) {
  return kLongRowsAhead ? 64 / bytes : 0;
}
template <typename Team>
constexpr int backward_blocks(int bytes) {
  return Team::kCount == 1 ? 1 : bytes <= 48 ? 3 : 2;
}
template <typename Team>
constexpr int backward_slots(int bytes) {
  return Team::kCount > 1 ? (bytes <= 64 ? 2 : 1) : kLongRowsAhead ? 32 / bytes : 0;
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

}  // namespace kintsugi::KINTSUGI_GPU

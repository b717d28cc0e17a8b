// The kernel language on the host: one fiber per thread of a block, and blocks distributed over some system threads.
// Strict: a barrier or exchange that some thread does not reach ends the program, naming the block and thread. Shared
// memory is `static thread_local`, since one system thread runs a whole block. Compile with -fno-strict-aliasing.
//
// Errors that are intermittent on a device should always occur in one of two orders (set_order): a warp runs as far as
// it can before the next, from the first or from the last, and asynchronous copies are done when issued or when waited
// for.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "kintsugi/device/device.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __shared__ static thread_local
#define threadIdx (::kintsugi::device::emulate::now().thread)
#define blockIdx (::kintsugi::device::emulate::now().block)
#define blockDim (::kintsugi::device::emulate::now().threads)
#define gridDim (::kintsugi::device::emulate::now().blocks)
#define GPU_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(::kintsugi::device::emulate::now().shared)

namespace kintsugi::device::emulate {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
struct Size {
  Size(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

// Indices of the running thread.
struct Now {
  Index thread, block;
  Size threads, blocks;
  std::byte* shared = nullptr;
};
const Now& now();
const void* kernel_now();  // identifies the running kernel
int own_lane();            // within its group of 32

// Sets the warp size for later kernel launches, 32 or 64. For tests.
void set_warp(int lanes);
int warp();
// Maximum dynamic shared memory of a block, in bytes: the value set, or (0) 64 KiB for warps of 64, as on AMD devices,
// and 227 KiB otherwise, as on NVIDIA compute capability 9.0. For tests.
void set_most_shared(size_t bytes);
size_t most_shared();

// The order in which the threads of a block run, for later kernel launches. For tests.
enum class Order {
  first_to_last,  // asynchronous copies are done when issued
  last_to_first,  // asynchronous copies are done when waited for
};
void set_order(Order order);
Order order();

// Source location of a barrier, exchange or wait for copies. The environment can suppress those of one location, in
// some kernels or in all, and request a list of all that were executed, with their kernels:
// KINTSUGI_EMULATE_WITHOUT="gpu.h:301 1c40 2f80", KINTSUGI_EMULATE_PLACES="file". A kernel is identified by its
// hexadecimal offset in the program, which nm resolves. For bench/gpu/remove_barriers.sh.
using Place = std::source_location;
extern const bool places_are_watched;
bool is_left_out(const Place& place);
inline bool left_out(const Place& place) {
  return places_are_watched && is_left_out(place);
}

enum class Gathering { barrier, cluster_barrier, warp_barrier, exchange, mma, load_matrices };

// Waits until all threads of the block (of the warp, except for barriers) have arrived; the last of them calls `act`
// with the `own` pointers of all, by position, and `count`; then all continue.
using Act = void (*)(void** own, int count);
void gather(Gathering what, void* own, Act act);

inline void block_barrier(const Place& place) {
  if (!left_out(place)) gather(Gathering::barrier, nullptr, nullptr);
}
inline void warp_barrier(const Place& place) {
  if (!left_out(place)) gather(Gathering::warp_barrier, nullptr, nullptr);
}

// Barrier over all blocks of a cluster. Each block runs alone between such barriers; its statically sized shared memory
// is lost there.
void wait_for_cluster();
inline void cluster_barrier(const Place& place) {
  if (!left_out(place)) wait_for_cluster();
}
// The same address in the dynamic shared memory of another block of the cluster, which has started and not exited.
void* of_block_in_cluster(void* own, unsigned block);

// Asynchronous copies of 16 bytes, committed in groups; the wait returns once at most `newest` groups are in flight.
void copy_async_16(void* to, const void* from);
void copy_async_commit();
void copy_async_wait(int newest);

// An exchange between lanes is not a memory barrier: writes of a lane before it may become visible to others later. It
// must therefore not synchronize for the thread sanitizer, and its own accesses are hidden from it.
#define KINTSUGI_BY_ALL_LANES __attribute__((no_sanitize("thread")))

// The value given by lane `from(own lane)`; lanes are numbered within groups of 32.
template <typename T, typename F>
T exchange(T given, const F& from, const Place& place) {
  if (left_out(place)) return given;
  struct Slot {
    T given, taken;
    int from;
  } slot{given, given, from(own_lane())};
  gather(Gathering::exchange, &slot, [](void** own, int count) KINTSUGI_BY_ALL_LANES {
    for (int i = 0; i < count; ++i) {
      auto* s = static_cast<Slot*>(own[i]);
      const int at = i / 32 * 32 + s->from;
      if (s->from >= 0 && s->from < 32 && at < count) s->taken = static_cast<Slot*>(own[at])->given;
    }
  });
  return slot.taken;
}

// x = join(x, value of lane ^ 16), then of lane ^ 8, and so on: equals five exchanges at the cost of one.
template <typename T, typename F>
T fold(T x, const F& join, const Place& place) {
  if (left_out(place)) return x;
  struct Slot {
    T x;
    const F* join;
  } slot{x, &join};
  gather(Gathering::exchange, &slot, [](void** own, int count) KINTSUGI_BY_ALL_LANES {
    for (int first = 0; first < count; first += 32) {
      const int lanes = count - first < 32 ? count - first : 32;
      for (int mask = 16; mask > 0; mask /= 2) {
        T before[32];
        for (int i = 0; i < lanes; ++i) before[i] = static_cast<Slot*>(own[first + i])->x;
        for (int i = 0; i < lanes; ++i) {
          auto* s = static_cast<Slot*>(own[first + i]);
          s->x = (*s->join)(before[i], before[(i ^ mask) < lanes ? i ^ mask : i]);
        }
      }
    }
  });
  return slot.x;
}

// Bit mask of the lanes in the group of 32 that give the same value.
uint32_t lanes_equal(int x, const Place& place);

template <typename Widen>
void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Widen) {
  struct Slot {
    float* d;
    const uint32_t *a, *b;
  } slot{d, a, b};
  gather(Gathering::mma, &slot, [](void** own, int count) KINTSUGI_BY_ALL_LANES {
    const auto half = [](uint32_t word, int upper) { return Widen{}(static_cast<uint16_t>(word >> (16 * upper))); };
    for (int first = 0; first < count; first += 32) {
      const auto lane = [&](int i) { return static_cast<Slot*>(own[first + i]); };
      for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 8; ++column) {
          float sum = 0;
          for (int k = 0; k < 16; ++k) {
            const Slot* of_a = lane(row % 8 * 4 + k % 8 / 2);
            const Slot* of_b = lane(column * 4 + k % 8 / 2);
            sum += half(of_a->a[row / 8 + 2 * (k / 8)], k % 2) * half(of_b->b[k / 8], k % 2);
          }
          lane(row % 8 * 4 + column / 2)->d[column % 2 + 2 * (row / 8)] += sum;
        }
    }
  });
}

void load_matrices(uint32_t (&r)[4], const void* row, bool transposed);

// For kernels launched by launch_overlapping. Here no kernel starts before the preceding one has finished, but each
// thread must have waited before it lets the next start, and before it exits.
void wait_for_kernels_before();
void let_next_begin();
void require_wait();

// Throws InternalError for a launch that a device would reject.
void require_possible(const Grid<Size>& grid, Size threads, size_t shared);
constexpr unsigned kMostThreads = 1024;  // per block

// Runs a kernel on this thread and its helpers: calls `body` once per thread of each block. `kernel` identifies it.
void run(Grid<Size> grid, Size threads, size_t shared, const void* kernel, const std::function<void()>& body);

// For tests with the address sanitizer: accesses to these bytes are reported until they are allowed again. No-op
// without it.
void forbid(const void* begin, size_t bytes);
void allow(const void* begin, size_t bytes);

// Thrown by work that depends on work not yet enqueued by another thread; it is retried.
struct NotYet {};

// Enqueues `work` in a stream of the emulated device.
void enqueue(Stream& stream, std::function<void()> work);
// Calls f with the stream; in a capture, at each launch with the stream that replaces it.
void at_each_launch(Stream& stream, const std::function<void(Stream&)>& f);
// Returns a function that executes all work enqueued in the stream so far, for use within work of another stream.
std::function<void()> all_until_here(Stream& stream);

template <typename... Parameters, typename... Arguments>
void launch(Stream& stream, Size grid, Size block, size_t shared, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || !stream.enqueues()) return;
  require_possible(grid, block, shared);
  enqueue(stream, [=, ... values = static_cast<std::decay_t<Parameters>>(arguments)] {
    run(grid, block, shared, reinterpret_cast<const void*>(kernel), [&] { kernel(values...); });
  });
}

template <typename... Parameters, typename... Arguments>
void launch_overlapping(Stream& stream, Grid<Size> grid, Size block, size_t shared, std::vector<Stream::Bytes> writes,
                        void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0 || !stream.enqueues()) return;
  require_possible(grid, block, shared);
  enqueue(stream, [=, ... values = static_cast<std::decay_t<Parameters>>(arguments)] {
    run(grid, block, shared, reinterpret_cast<const void*>(kernel), [&] {
      kernel(values...);
      require_wait();
    });
  });
  stream.native_overlapping(std::move(writes));
}

}  // namespace kintsugi::device::emulate

using dim3 = kintsugi::device::emulate::Size;
inline void __syncthreads(std::source_location place = std::source_location::current()) {
  kintsugi::device::emulate::block_barrier(place);
}
template <typename T>
T __ldg(const T* x) {
  return *x;
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
inline float __expf(float x) {
  return std::exp(x);
}

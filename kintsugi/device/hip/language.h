// What kernels for AMD devices need from the compiler, without ROCm: clang -x hip -nogpuinc -nogpulib provides the
// intrinsics, and this header gives them CUDA's names. Lanes exchange in groups of 32, so a wavefront of 64 is two
// groups.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kintsugi/base/error.h"

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) \
  __attribute__((amdgpu_flat_work_group_size(1, ::kintsugi::device::hip::most_threads(__VA_ARGS__))))
#define threadIdx (::kintsugi::device::hip::thread())
#define blockIdx (::kintsugi::device::hip::block())
#define blockDim (::kintsugi::device::hip::threads())
#define gridDim (::kintsugi::device::hip::blocks())

struct dim3 {
  __host__ __device__ constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

// From HIP's runtime, which is linked when the module is built.
extern "C" int hipLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** arguments, size_t shared,
                               void* stream);

namespace kintsugi::device::hip {

constexpr int most_threads(int threads, int /*blocks*/ = 1) {
  return threads;
}

struct Index {
  unsigned x, y, z;
};
__device__ __forceinline__ Index thread() {
  return {__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z()};
}
__device__ __forceinline__ Index block() {
  return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z()};
}
__device__ __forceinline__ Index threads() {
  return {__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
          __builtin_amdgcn_workgroup_size_z()};
}
__device__ __forceinline__ Index blocks() {  // HIP counts the grid in threads
  const Index of = threads();
  return {__builtin_amdgcn_grid_size_x() / of.x, __builtin_amdgcn_grid_size_y() / of.y,
          __builtin_amdgcn_grid_size_z() / of.z};
}

// Within the wavefront.
__device__ __forceinline__ int own_lane() {
  return static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)));
}
// The value given by that lane of the group of 32.
template <typename T>
__device__ __forceinline__ T from_lane(T x, int lane) {
  static_assert(sizeof(T) % 4 == 0);
  int words[sizeof(T) / 4];
  __builtin_memcpy(words, &x, sizeof(T));
  GPU_UNROLL
  for (int& word : words) word = __builtin_amdgcn_ds_bpermute(4 * ((own_lane() & ~31) | lane), word);
  __builtin_memcpy(&x, words, sizeof(T));
  return x;
}

}  // namespace kintsugi::device::hip

__device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
template <typename T>
__device__ __forceinline__ T __ldg(const T* x) {
  return *x;
}

#include "kintsugi/device/hip/math.h"

namespace kintsugi::gpu_hip {

template <typename T>
__device__ __forceinline__ T shuffle(T x, int lane) {
  return device::hip::from_lane(x, lane & 31);
}
template <typename T>
__device__ __forceinline__ T shuffle_xor(T x, int mask) {
  return device::hip::from_lane(x, (device::hip::own_lane() & 31) ^ mask);
}
template <typename T>
__device__ __forceinline__ T shuffle_down(T x, int by) {
  const int own = device::hip::own_lane() & 31;
  return device::hip::from_lane(x, own + by < 32 ? own + by : own);
}
__device__ __forceinline__ int count_bits(uint32_t bits) {
  return __builtin_popcount(bits);
}
// Lanes of a wavefront run in lockstep: only memory needs ordering.
__device__ __forceinline__ void warp_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}
__device__ __forceinline__ uint32_t lanes_equal(int x) {
  uint32_t equal = 0;
  for (int lane = 0; lane < 32; ++lane) equal |= static_cast<uint32_t>(shuffle(x, lane) == x) << lane;
  return equal;
}
__device__ __forceinline__ int atomic_add(int* to, int by) {
  return __atomic_fetch_add(to, by, __ATOMIC_RELAXED);
}
// No asynchronous copies: a copy is done when issued.
constexpr bool kCopiesBeside = false;
__device__ __forceinline__ void copy_async_16(void* shared, const void* global) {
  __builtin_memcpy(__builtin_assume_aligned(shared, 16), __builtin_assume_aligned(global, 16), 16);
}
__device__ __forceinline__ void copy_async_commit() {}
template <int kNewest>
__device__ __forceinline__ void copy_async_wait() {}

// Kernels never overlap.
__device__ __forceinline__ void wait_for_kernels_before() {}
__device__ __forceinline__ void let_next_begin() {}

// No clusters.
template <typename... Parameters>
bool has_clusters(void (*)(Parameters...)) {
  return false;
}
__device__ __forceinline__ void cluster_begins() {}
__device__ __forceinline__ void cluster_barrier() {}
template <typename T>
__device__ __forceinline__ T* of_block_in_cluster(T* own, unsigned) {
  return own;
}

constexpr size_t kLeastShared = 64 * 1024, kMostShared = kLeastShared;
constexpr size_t most_shared() {
  return kMostShared;
}
// For kernels with the maximum number of registers, on an MI200.
template <typename... Parameters>
int64_t blocks_at_one_time(void (*)(Parameters...), int) {
  return 110 * 8;
}

template <typename... Parameters, typename... Arguments>
void launch(device::Stream& stream, dim3 grid, dim3 block, size_t shared, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || !stream.enqueues()) return;
  const auto start = [&](Parameters... values) {
    void* pointers[] = {&values...};
    return hipLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers, shared, stream.native());
  };
  if (const int error = start(static_cast<Parameters>(arguments)...); error != 0)
    throw base::InternalError("device", "a kernel was not launched: error {} of HIP", error);
}

template <typename... Parameters, typename... Arguments>
void launch_overlapping(device::Stream& stream, device::Grid<dim3> grid, dim3 block, size_t shared,
                        const std::vector<device::Stream::Bytes>&, void (*kernel)(Parameters...),
                        Arguments&&... arguments) {
  launch(stream, grid.blocks, block, shared, kernel, arguments...);
}

}  // namespace kintsugi::gpu_hip

// The language of device kernels, in CUDA's spelling. The same source is compiled by nvcc, by clang for AMD devices
// (device/hip/language.h), or by the host compiler for the emulation (device/emulate.h), which runs each thread of a
// block as a fiber.
//
// Differences from plain CUDA, so that all can compile it:
//  - kernels are launched with launch(stream, grid, block, shared bytes, kernel, arguments...);
//  - dynamic shared memory is declared by GPU_DYNAMIC_SHARED(T, name);
//  - lanes exchange values in groups of 32, whatever the warp size: shuffle, shuffle_xor, shuffle_down, lanes_equal,
//    and sums in one fixed tree, so that a warp of 64 adds like two of 32. All threads of a block take part in each
//    exchange and each barrier;
//  - bf16 and f16 are storage types: widen() and narrow<T>() convert them;
//  - mma_16x8x16 multiplies on tensor cores, copy_async_16 copies to shared memory asynchronously;
//  - a kernel launched with launch_overlapping may start before the preceding one has finished, and adjacent blocks of
//    it may form a cluster on devices for which has_clusters() is true.
// Kernel code is in the namespace KINTSUGI_GPU, which differs per compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "kintsugi/base/overlap.h"
#include "kintsugi/device/device.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <bit>

#include "kintsugi/base/error.h"
#include "kintsugi/device/cuda/failures.h"
#define KINTSUGI_GPU gpu_cuda
#define KINTSUGI_ON_GPU 1
#define GPU_DYNAMIC_SHARED(T, name)                              \
  extern __shared__ __align__(1024) unsigned char gpu_shared_[]; \
  T* const name = reinterpret_cast<T*>(gpu_shared_)
#define GPU_UNROLL _Pragma("unroll")
#define GPU_ROLL _Pragma("unroll 1")
#elif defined(__HIP__)
#define KINTSUGI_GPU gpu_hip
#define KINTSUGI_ON_GPU 1
#define GPU_DYNAMIC_SHARED(T, name)                                           \
  extern __shared__ __attribute__((aligned(16))) unsigned char gpu_shared_[]; \
  T* const name = reinterpret_cast<T*>(gpu_shared_)
#define GPU_UNROLL _Pragma("unroll")
#define GPU_ROLL _Pragma("unroll 1")
#include "kintsugi/device/hip/language.h"
#else
#include "kintsugi/device/emulate.h"
#define KINTSUGI_GPU gpu_emulated
#define KINTSUGI_ON_GPU 0
#define GPU_UNROLL
#define GPU_ROLL
#endif

namespace kintsugi::KINTSUGI_GPU {

// Besides launch() there is launch_overlapping(), for a kernel that may start while the preceding one runs if both are
// launched this way: on NVIDIA compute capability 9.0 and newer, where a launch takes longer than many kernels of a
// decoding step. Requirements:
//  - each of its threads calls wait_for_kernels_before(), unconditionally; after that all preceding work of the stream
//    has completed and is visible;
//  - before that call it reads only memory that is `unwritten`, and writes no device memory;
//  - it calls let_next_begin() after that, so that at most two kernels are in flight, this one and the next;
//  - `writes` is everything it writes.
//
// The blocks of a cluster run concurrently, on NVIDIA compute capability 9.0 and newer, and may write to each other's
// dynamic shared memory after cluster_begins(), with a cluster_barrier() before another block reads. All threads of all
// blocks of the cluster take part in both. Statically sized shared memory does not survive them.

// 16-bit storage.
struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

// Up to 16 bytes of elements that are loaded and stored together.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T at[N];
  __device__ T& operator[](int i) { return at[i]; }
  __device__ const T& operator[](int i) const { return at[i]; }
};

#if defined(__CUDACC__)
__device__ __forceinline__ float widen(bf16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}
__device__ __forceinline__ float widen(f16 x) {
  return __half2float(__ushort_as_half(x.bits));
}
template <typename T>
__device__ __forceinline__ T narrow(float x) {
  if constexpr (sizeof(T) == 2) {
    if constexpr (__is_same(T, bf16)) {
      return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
    } else {
      return {__half_as_ushort(__float2half_rn(x))};
    }
  } else {
    return static_cast<T>(x);
  }
}
template <typename T>
__device__ __forceinline__ T shuffle(T x, int lane) {
  return __shfl_sync(0xFFFFFFFFu, x, lane, 32);
}
template <typename T>
__device__ __forceinline__ T shuffle_xor(T x, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, x, mask, 32);
}
template <typename T>
__device__ __forceinline__ T shuffle_down(T x, int by) {
  return __shfl_down_sync(0xFFFFFFFFu, x, by, 32);
}
// Bit mask of the lanes that give the same value.
__device__ __forceinline__ uint32_t lanes_equal(int x) {
  return __match_any_sync(0xFFFFFFFFu, x);
}
__device__ __forceinline__ int count_bits(uint32_t bits) {
  return __popc(bits);
}
__device__ __forceinline__ void warp_barrier() {
  __syncwarp();
}
// Integers only, whose sum does not depend on order. Returns the old value.
__device__ __forceinline__ int atomic_add(int* to, int by) {
  return atomicAdd(to, by);
}
// Both addresses must be aligned to 16 bytes.
constexpr bool kCopiesBeside = true;  // false: copies are synchronous
__device__ __forceinline__ void copy_async_16(void* shared, const void* global) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(global) : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
template <int kNewest>  // groups that may still be in flight
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kNewest) : "memory");
}
// d += a b, with a [16 16] row-major, b [16 8] column-major, d [16 8] in fp32. Fragments as in PTX mma.m16n8k16: with g
// = lane / 4 and t = lane % 4, a = {(g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8)}, each with its right neighbor
// in the upper half, b = {(2t, g), (2t + 8, g)}, each with the element below it, d = {(g, 2t), (g, 2t + 1), (g + 8,
// 2t), (g + 8, 2t + 1)}.
template <typename T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (__is_same(T, bf16)) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}
// Loads four 8 x 8 matrices of 16-bit elements from shared memory: lane i passes the address of row i % 8 of matrix i /
// 8, and receives from each matrix element (lane / 4, 2 (lane % 4)) and its right neighbor; with `Transposed`, those of
// the transpose.
template <bool Transposed = false>
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
  }
}

__device__ __forceinline__ void wait_for_kernels_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}
__device__ __forceinline__ void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}
// Waits until all blocks of the cluster have started.
__device__ __forceinline__ void cluster_begins() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_barrier() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" ::: "memory");
#endif
}
// The same address in the dynamic shared memory of another block of the cluster.
template <typename T>
__device__ __forceinline__ T* of_block_in_cluster(T* own, unsigned block) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  return static_cast<T*>(__cluster_map_shared_rank(own, block));
#else
  return own;
#endif
}

// Maximum opt-in shared memory of a block, in bytes: the least and the most over supported devices (least: compute
// capability 8.6, 8.9, 12.0), and that of this device.
constexpr size_t kLeastShared = 99 * 1024, kMostShared = 227 * 1024;
inline size_t most_shared() {
  int device = 0, bytes = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess;
  return known ? static_cast<size_t>(bytes) : 48 * 1024;
}

// The number of blocks of a kernel without dynamic shared memory that the device runs concurrently.
template <typename... Parameters>
int64_t blocks_at_one_time(void (*kernel)(Parameters...), int threads) {
  int device = 0, processors = 0, of_each = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) == cudaSuccess &&
                     cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, threads, 0) == cudaSuccess;
  return known && of_each > 0 ? static_cast<int64_t>(processors) * of_each : 1024;
}

// Whether the kernel's code for this device contains wait_for_kernels_before(), and the driver can capture overlapping
// kernels.
template <typename... Parameters>
bool waits_by_itself(void (*kernel)(Parameters...)) {
#if CUDART_VERSION >= 12030
  int driver = 0;
  cudaFuncAttributes attributes;
  return cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030 &&
         cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 90;
#else
  return false;
#endif
}

inline void check_launch(cudaError_t error) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  // Asynchronous errors of earlier work, such as a device that no longer responds, also surface here.
  const std::string_view advice = device::advice_for(error);
  if (advice.empty()) throw base::InternalError("device", "a kernel was not launched: {}", cudaGetErrorString(error));
  throw base::UserError("device", "the device failed at the launch of a kernel: {} ({}); {}", cudaGetErrorString(error),
                        cudaGetErrorName(error), advice);
}

template <typename... Parameters>
bool can_launch(device::Stream& stream, dim3 grid, size_t shared, void (*kernel)(Parameters...)) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return false;
  constexpr size_t kWithoutAsking = 48 * 1024,
                   kOfItsOwn = 16 * 1024;  // the latter bounds a kernel's static shared memory
  if (shared > kWithoutAsking - kOfItsOwn)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (stream.enqueues()) return true;
  cudaFuncAttributes loaded;  // loads the kernel, since CUDA loads lazily (CUDA programming guide, "Lazy Loading")
  cudaFuncGetAttributes(&loaded, kernel);
  return false;
}

template <typename... Parameters, typename... Arguments>
void launch(device::Stream& stream, dim3 grid, dim3 block, size_t shared, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (!can_launch(stream, grid, shared, kernel)) return;
  kernel<<<grid, block, shared, static_cast<cudaStream_t>(stream.native())>>>(static_cast<Parameters>(arguments)...);
  check_launch(cudaGetLastError());
}

template <typename... Parameters>
bool has_clusters(void (*kernel)(Parameters...)) {
  return waits_by_itself(kernel);
}

template <typename... Parameters, typename... Arguments>
void launch_overlapping(device::Stream& stream, device::Grid<dim3> grid, dim3 block, size_t shared,
                        std::vector<device::Stream::Bytes> writes, void (*kernel)(Parameters...),
                        Arguments&&... arguments) {
  if (!waits_by_itself(kernel)) return launch(stream, grid.blocks, block, shared, kernel, arguments...);
  if (!can_launch(stream, grid.blocks, shared, kernel)) return;
  // Kernels that prefer different carve-outs do not run on a multiprocessor concurrently.
  constexpr size_t kMuch = 32 * 1024;
  if (shared > kMuch)
    cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid.blocks, config.blockDim = block, config.dynamicSmemBytes = shared, config.attrs = attributes;
  if (stream.written_before() != nullptr) {
    cudaLaunchAttribute& overlaps = attributes[config.numAttrs++];
    overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlaps.val.programmaticStreamSerializationAllowed = 1;
  }
  if (grid.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {grid.cluster, 1, 1};
  }
  config.stream = static_cast<cudaStream_t>(stream.native_overlapping(std::move(writes)));
  check_launch(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}
#elif defined(__HIP__)
__device__ __forceinline__ float widen(bf16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}
__device__ __forceinline__ float widen(f16 x) {
  return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
}
template <typename T>
__device__ __forceinline__ T narrow(float x) {
  if constexpr (__is_same(T, bf16)) {
    const auto u = __builtin_bit_cast(uint32_t, x);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((u >> 16) | 0x40u)};  // stays NaN
    return {static_cast<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16)};
  } else if constexpr (__is_same(T, f16)) {
    return {__builtin_bit_cast(uint16_t, static_cast<_Float16>(x))};
  } else {
    return static_cast<T>(x);
  }
}
#else
inline float widen(bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}
inline float widen(f16 x) {
  return static_cast<float>(std::bit_cast<_Float16>(x.bits));
}
template <typename T>
T narrow(float x) {
  if constexpr (std::is_same_v<T, bf16>) {
    const auto u = std::bit_cast<uint32_t>(x);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((u >> 16) | 0x40u)};  // stays NaN
    return {static_cast<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16)};
  } else if constexpr (std::is_same_v<T, f16>) {
    return {std::bit_cast<uint16_t>(static_cast<_Float16>(x))};
  } else {
    return static_cast<T>(x);
  }
}
using Place = device::emulate::Place;
template <typename T>
T shuffle(T x, int lane, Place place = Place::current()) {
  return device::emulate::exchange(
      x, [lane](int) { return lane & 31; }, place);
}
template <typename T>
T shuffle_xor(T x, int mask, Place place = Place::current()) {
  return device::emulate::exchange(
      x, [mask](int own) { return own ^ mask; }, place);
}
template <typename T>
T shuffle_down(T x, int by, Place place = Place::current()) {
  return device::emulate::exchange(
      x, [by](int own) { return own + by < 32 ? own + by : own; }, place);
}
inline uint32_t lanes_equal(int x, Place place = Place::current()) {
  return device::emulate::lanes_equal(x, place);
}
inline int count_bits(uint32_t bits) {
  return std::popcount(bits);
}
inline void warp_barrier(Place place = Place::current()) {
  device::emulate::warp_barrier(place);
}
inline int atomic_add(int* to, int by) {
  return std::atomic_ref<int>(*to).fetch_add(by, std::memory_order_relaxed);
}
constexpr bool kCopiesBeside = true;
inline void copy_async_16(void* shared, const void* global) {
  device::emulate::copy_async_16(shared, global);
}
inline void copy_async_commit() {
  device::emulate::copy_async_commit();
}
template <int kNewest>
void copy_async_wait(Place place = Place::current()) {
  if (!device::emulate::left_out(place)) device::emulate::copy_async_wait(kNewest);
}
template <typename T>
void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  device::emulate::mma_16x8x16(d, a, b, [](uint16_t bits) { return widen(T{bits}); });
}
template <bool Transposed = false>
void load_matrices(uint32_t (&r)[4], const void* row) {
  device::emulate::load_matrices(r, row, Transposed);
}
inline void cluster_begins(Place place = Place::current()) {
  device::emulate::cluster_barrier(place);
}
inline void cluster_barrier(Place place = Place::current()) {
  device::emulate::cluster_barrier(place);
}
template <typename T>
T* of_block_in_cluster(T* own, unsigned block) {
  return static_cast<T*>(device::emulate::of_block_in_cluster(own, block));
}
template <typename... Parameters>
bool has_clusters(void (*)(Parameters...)) {
  return device::emulate::warp() == 32;  // as on NVIDIA devices
}
constexpr size_t kLeastShared = 64 * 1024, kMostShared = 227 * 1024;
using device::emulate::launch;
using device::emulate::launch_overlapping;
using device::emulate::let_next_begin;
using device::emulate::most_shared;
using device::emulate::wait_for_kernels_before;
template <typename... Parameters>
int64_t blocks_at_one_time(void (*)(Parameters...), int) {
  return 1024;
}
#endif

// Whether a block may have that many bytes of dynamic shared memory, plus the small static part of most kernels.
inline bool has_shared(size_t bytes) {
  constexpr size_t kOfItsOwn = 1024;
  return bytes + kOfItsOwn <= most_shared();
}

// Whether none of these ranges is written by the kernel that may still be running when the next launch_overlapping
// kernel starts.
inline bool unwritten(const device::Stream& stream, std::initializer_list<device::Stream::Bytes> all) {
  const std::vector<device::Stream::Bytes>* const before = stream.written_before();
  if (before == nullptr) return false;
  for (const auto& written : *before)
    for (const auto& read : all)
      if (base::overlap(read, written)) return false;
  return true;
}
inline device::Stream::Bytes bytes_at(const void* at, int64_t bytes) {
  return {static_cast<const std::byte*>(at), at == nullptr ? 0 : static_cast<size_t>(bytes)};
}

__device__ inline float widen(float x) {
  return x;
}
__device__ inline double widen(double x) {
  return x;
}

// Sum of 32 lanes in a fixed tree, the same in all of them; and the maximum.
#if KINTSUGI_ON_GPU
template <typename T>
__device__ T lanes_sum(T x) {
  for (int mask = 16; mask > 0; mask /= 2) x = x + shuffle_xor(x, mask);
  return x;
}
template <typename T>
__device__ T lanes_max(T x) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const T other = shuffle_xor(x, mask);
    x = other > x ? other : x;
  }
  return x;
}
#else
template <typename T>
T lanes_sum(T x, Place place = Place::current()) {
  return device::emulate::fold(
      x, [](T a, T b) { return a + b; }, place);
}
template <typename T>
T lanes_max(T x, Place place = Place::current()) {
  return device::emulate::fold(
      x, [](T a, T b) { return b > a ? b : a; }, place);
}
#endif
// Reduction over a block of at most 1,024 threads, a multiple of 32, the same in all of them; `scratch`: 32 elements of
// shared memory, which nothing else may use until all threads have returned.
template <typename T>
__device__ T block_sum(T x, T* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  x = lanes_sum(x);
  __syncthreads();
  if (lane == 0) scratch[group] = x;
  __syncthreads();
  x = lane < static_cast<int>(blockDim.x) / 32 ? scratch[lane] : T(0);
  return lanes_sum(x);
}

}  // namespace kintsugi::KINTSUGI_GPU

#if defined(__HIP__)
#include "kintsugi/device/exchanged.h"

namespace kintsugi::KINTSUGI_GPU {

template <typename T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  mma_by_exchanges<T>(d, a, b, device::hip::own_lane() & 31);
}
template <bool Transposed = false>
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void* row) {
  load_by_exchanges<Transposed>(r, row, device::hip::own_lane() & 31);
}

}  // namespace kintsugi::KINTSUGI_GPU
#endif

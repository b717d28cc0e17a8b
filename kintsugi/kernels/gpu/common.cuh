// Shared by device kernels: types, indices passed by value, and loads and stores of 16 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/gpu/kernels.h"
#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::KINTSUGI_GPU {

using kernels::Numbers;
using tensor::DType;
using tensor::View;

// Calls f with a value of the type of a storage dtype: fp32, bf16 or fp16. Throws InternalError for others.
template <typename F>
void dispatch(std::string_view kind, DType dtype, const F& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::f16:
      return f(f16{});
    default:
      throw base::InternalError("kernel", "{} of {} on a device, which has fp32, bf16 and fp16", kind, name_of(dtype));
  }
}

template <typename T>
T* data(const View& v) {
  return reinterpret_cast<T*>(v.data);
}

// For launch_overlapping; empty if the operand is absent.
inline device::Stream::Bytes bytes_of(const View& v) {
  return bytes_at(v.data, v.data == nullptr ? 0 : v.type.bytes());
}

// Stores, or accumulates if `add`; rounds once.
template <typename T>
__device__ __forceinline__ void put(T* to, float value, bool add) {
  *to = narrow<T>(add ? widen(*to) + value : value);
}

// Loads N adjacent elements, widened, in words of 16 bytes, or of fewer if all are fewer; must be aligned to that.
template <typename T, int N>
__device__ __forceinline__ void load_run(float (&x)[N], const T* from) {
  constexpr int kWord = std::min(N, 16 / static_cast<int>(sizeof(T)));
  GPU_UNROLL
  for (int w = 0; w < N; w += kWord) {
    const auto word = *reinterpret_cast<const Vec<T, kWord>*>(from + w);
    GPU_UNROLL
    for (int i = 0; i < kWord; ++i) x[w + i] = widen(word[i]);
  }
}
// Stores, or accumulates if `add`; rounds once.
template <typename T, int N>
__device__ __forceinline__ void put_run(T* to, const float (&x)[N], bool add) {
  constexpr int kWord = std::min(N, 16 / static_cast<int>(sizeof(T)));
  GPU_UNROLL
  for (int w = 0; w < N; w += kWord) {
    auto* const at = reinterpret_cast<Vec<T, kWord>*>(to + w);
    Vec<T, kWord> word = {};
    if (add) word = *at;
    GPU_UNROLL
    for (int i = 0; i < kWord; ++i) put(&word[i], x[w + i], add);
    *at = word;
  }
}

// N adjacent elements in storage format: occupies no more registers than its bytes, and adjacent loads are in flight
// together. Aligned to its size.
template <typename T, int N>
struct Packed {
  static constexpr int kBytes = N * static_cast<int>(sizeof(T));
  using Word = std::conditional_t<kBytes % 4 == 0, uint32_t, uint16_t>;
  Vec<Word, kBytes / static_cast<int>(sizeof(Word))> words;

  __device__ __forceinline__ void load(const T* from) { words = *reinterpret_cast<const decltype(words)*>(from); }
  __device__ __forceinline__ auto operator[](int i) const {
    if constexpr (sizeof(T) == 8) {
      return std::bit_cast<double>(words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32);
    } else if constexpr (sizeof(T) == 4) {
      return std::bit_cast<float>(words[i]);
    } else if constexpr (sizeof(Word) == 2) {
      return widen(T{words[i]});
    } else {
      return widen(T{static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16))});
    }
  }
};

// Sums that are reduced together.
template <int K>
struct Sums {
  float at[K];
};
template <int K>
__device__ __forceinline__ Sums<K> operator+(const Sums<K>& a, const Sums<K>& b) {
  Sums<K> sum;
  GPU_UNROLL
  for (int k = 0; k < K; ++k) sum.at[k] = a.at[k] + b.at[k];
  return sum;
}

#if KINTSUGI_ON_GPU
template <int K>
__device__ __forceinline__ Sums<K> shuffle_xor(const Sums<K>& x, int mask) {
  Sums<K> other;
  GPU_UNROLL
  for (int k = 0; k < K; ++k) other.at[k] = KINTSUGI_GPU::shuffle_xor(x.at[k], mask);
  return other;
}
#endif

// Memory whose type is known at run time: fp32, bf16 or fp16.
struct AnyData {
  void* data = nullptr;
  DType dtype = DType::f32;

  template <int N>
  __device__ __forceinline__ void load(float (&x)[N], int64_t at) const {
    if (dtype == DType::f32) {
      load_run(x, static_cast<const float*>(data) + at);
    } else if (dtype == DType::bf16) {
      load_run(x, static_cast<const bf16*>(data) + at);
    } else {
      load_run(x, static_cast<const f16*>(data) + at);
    }
  }
  template <int N>
  __device__ __forceinline__ void put(int64_t at, const float (&x)[N], bool add) const {
    if (dtype == DType::f32) {
      put_run(static_cast<float*>(data) + at, x, add);
    } else if (dtype == DType::bf16) {
      put_run(static_cast<bf16*>(data) + at, x, add);
    } else {
      put_run(static_cast<f16*>(data) + at, x, add);
    }
  }
};
// Throws InternalError for other types; an absent value has none.
inline AnyData any_data(std::string_view kind, const View& v) {
  if (v.data != nullptr) dispatch(kind, v.dtype(), [](auto) {});
  return {v.data, v.dtype()};
}

// DimIndex as a kernel argument: the global index of each local position of a dim.
struct LocalIndex {
  static constexpr int kMost = 16;
  int64_t whole = 0;
  int count = 0;
  int64_t global[kMost] = {}, begin[kMost + 1] = {};

  // -1 at padding.
  __device__ int64_t operator[](int64_t local) const {
    for (int i = 0; i < count; ++i)
      if (local < begin[i + 1]) return global[i] < 0 ? -1 : global[i] + local - begin[i];
    return -1;
  }
  // The inverse; -1 if this block does not have the position.
  __device__ int64_t local_of(int64_t wanted) const {
    for (int i = 0; i < count; ++i)
      if (global[i] >= 0 && wanted >= global[i] && wanted < global[i] + begin[i + 1] - begin[i])
        return begin[i] + wanted - global[i];
    return -1;
  }
};

inline LocalIndex local_index(const tensor::DimIndex& index) {
  LocalIndex made;
  made.whole = index.whole();
  for (const tensor::Segment& s : index.segments()) {
    base::require(made.count < LocalIndex::kMost, "kernel", "an index of more than {} runs on a device",
                  LocalIndex::kMost);
    made.global[made.count] = s.global;
    made.begin[made.count + 1] = made.begin[made.count] + s.count;
    ++made.count;
  }
  return made;
}

// width(): size of the last dim; rows(): product of the dims before it.
inline int64_t width(const tensor::Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1].size;
}
inline int64_t rows(const tensor::Shape& shape) {
  return shape.elements() == 0 ? 0 : shape.elements() / width(shape);
}

// Grid-stride kernels over pieces of work, whose results do not depend on the number of threads: as many blocks as the
// device runs concurrently, so that there is no partial wave.
constexpr int kPieceThreads = 256;
template <typename... Parameters>
dim3 blocks_of_pieces(int64_t pieces, void (*kernel)(Parameters...)) {
  const int64_t blocks = (pieces + kPieceThreads - 1) / kPieceThreads;
  const int64_t most = blocks_at_one_time(kernel, kPieceThreads);
  return dim3(static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, most)));
}
template <typename... Parameters, typename... Arguments>
void launch_pieces(device::Stream& stream, int64_t pieces, void (*kernel)(Parameters...), Arguments&&... arguments) {
  launch(stream, blocks_of_pieces(pieces, kernel), dim3(kPieceThreads), 0, kernel,
         std::forward<Arguments>(arguments)...);
}

// Multiprocessors of a large device. Work that is cut in a way that affects the order of sums uses this on every
// device.
constexpr int64_t kProcessors = 132;

// Runs another kernel on `in` as part of a call, in its stream and workspace, writing its output `out`.
inline void make_also(const KernelCall& call, void (*kernel)(const KernelCall&), const View& in, size_t out,
                      bool adds) {
  const View ins[] = {in}, outs[] = {call.outs[out]};
  KernelCall other = call;
  other.ins = ins, other.outs = outs, other.accumulate = adds;
  kernel(other);
}
inline void make_also(const KernelCall& call, void (*kernel)(const KernelCall&), const View& in, size_t out) {
  make_also(call, kernel, in, out, call.accumulates(out));
}

inline int64_t quotient_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// First piece of this thread, and the stride, in a grid-stride loop.
__device__ __forceinline__ int64_t first_piece() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t all_threads() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

// Elements of T in 16 bytes.
template <typename T>
constexpr int kWide = 16 / static_cast<int>(sizeof(T));

// Whether all are aligned to 16 bytes.
template <typename... P>
bool all_wide(const P*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace kintsugi::KINTSUGI_GPU

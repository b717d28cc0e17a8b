// Shared by elementwise kernels, sums and moves, in addition to common.cuh: fp64 scalars, positions in operands with
// fewer dims or another order, and words of up to 16 bytes for moves.
#pragma once

#include <type_traits>
#include <vector>

#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

// As dispatch(), plus fp64: scalars and states of the run.
template <typename F>
void dispatch_wide(std::string_view kind, DType dtype, const F& f) {
  dtype == DType::f64 ? f(double{}) : dispatch(kind, dtype, f);
}

// Accumulation type for elements of these types.
template <typename... T>
using Sum = std::conditional_t<(std::is_same_v<T, double> || ...), double, float>;

// Rounds to odd, so that a second rounding to fewer bits equals a single rounding, as in the reference.
__device__ __forceinline__ float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  const double magnitude = fabs(x), near = fabs(static_cast<double>(nearest));
  if (magnitude == near || !(near < INFINITY) || (bits & 1u)) return nearest;
  return std::bit_cast<float>(magnitude > near ? bits + 1 : bits - 1);
}

// Stores, or accumulates if `add`; rounds once.
template <typename T, typename A>
__device__ __forceinline__ void store(T* to, A value, bool add) {
  if (add) value += static_cast<A>(widen(*to));
  if constexpr (std::is_same_v<T, double>) {
    *to = value;
  } else if constexpr (std::is_same_v<A, double> && sizeof(T) == 2) {
    *to = narrow<T>(round_to_odd(value));
  } else {
    *to = narrow<T>(static_cast<float>(value));
  }
}

// Division by a launch-time constant, by multiplication if the dividend is below 2^31 (Granlund, Montgomery 1994,
// "Division by invariant integers using multiplication").
struct Divisor {
  int64_t by = 1;
  uint32_t multiplier = 1;
  int shift = 0;

  Divisor() = default;
  explicit Divisor(int64_t divisor) : by(divisor) {
    if (by >= int64_t{1} << 31) {
      multiplier = 0, shift = 31;
      return;
    }
    while ((int64_t{1} << shift) < by) ++shift;
    const auto d = static_cast<uint64_t>(by);
    multiplier = static_cast<uint32_t>((((uint64_t{1} << shift) - d) << 32) / d + 1);
  }
  __device__ __forceinline__ int64_t quotient(int64_t n) const {
    if (n >= int64_t{1} << 31) return n / by;
    const auto low = static_cast<uint32_t>(n);
    return (static_cast<uint32_t>((static_cast<uint64_t>(low) * multiplier) >> 32) + low) >> shift;
  }
};

constexpr int kMostDims = 6;

// Decomposes a row-major index into the index of each dim.
struct Dims {
  int rank = 1;
  Divisor size[kMostDims];

  __device__ __forceinline__ void split(int64_t point, int64_t (&index)[kMostDims]) const {
    GPU_UNROLL
    for (int d = kMostDims - 1; d > 0; --d) {
      index[d] = 0;
      if (d >= rank) continue;
      const int64_t above = size[d].quotient(point);
      index[d] = point - above * size[d].by;
      point = above;
    }
    index[0] = point;
  }
};

// A dim of an output or an operand, with its stride in each operand of a list; 0 if the operand lacks it.
struct Walked {
  int64_t size = 1;
  std::vector<int64_t> strides = {};
};

// The dims of `over`, for operands that have a subset of them; merges dims that are contiguous in all operands, and
// returns at least one. Throws InternalError if sizes differ.
inline std::vector<Walked> walk(const tensor::Shape& over, const std::vector<tensor::Shape>& operands) {
  std::vector<Walked> dims;
  for (const tensor::Dim& dim : over) {
    Walked next{.size = dim.size};
    for (const tensor::Shape& shape : operands) {
      const int at = shape.find(dim.name);
      base::require(at < 0 || shape[static_cast<size_t>(at)].size == dim.size, "kernel", "{} beside {}",
                    to_string(shape), to_string(over));
      next.strides.push_back(at < 0 ? 0 : shape.stride(static_cast<size_t>(at)));
    }
    if (dim.size == 1) continue;
    bool one = !dims.empty();
    for (size_t i = 0; one && i < operands.size(); ++i) one = dims.back().strides[i] == next.strides[i] * next.size;
    if (one) {
      dims.back().size *= next.size;
      dims.back().strides = next.strides;
    } else {
      dims.push_back(next);
    }
  }
  if (dims.empty()) dims.push_back({.size = 1, .strides = std::vector<int64_t>(operands.size(), 1)});
  base::require(dims.size() <= kMostDims, "kernel", "{} on a device: more than {} dims that do not merge",
                to_string(over), kMostDims);
  return dims;
}

// The widest word, up to 16 bytes, that divides all of these byte counts and addresses.
inline int word_of(std::initializer_list<int64_t> bytes) {
  int64_t bits = 16;
  for (int64_t b : bytes) bits |= b;
  return static_cast<int>(bits & -bits);
}
inline int64_t address(const void* p) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p));
}

using Word16 = Vec<uint32_t, 4>;

// Calls f with a value of a type of that size.
template <typename F>
void with_word(int bytes, const F& f) {
  switch (bytes) {
    case 16:
      return f(Word16{});
    case 8:
      return f(uint64_t{});
    case 4:
      return f(uint32_t{});
    case 2:
      return f(uint16_t{});
    default:
      return f(uint8_t{});
  }
}

}  // namespace kintsugi::KINTSUGI_GPU

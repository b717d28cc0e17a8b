// Rotation of pairs of elements by position: for rotary.cuh, and for attention that rotates its operands itself.
#pragma once

#include <numbers>

#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/rotary_frequencies.h"

namespace kintsugi::KINTSUGI_GPU {

template <int kMostPairs>
struct RotaryTurns {
  int half = 0;  // pairs per row to rotate
  float magnitude = 1, sign = 1;
  double turns[kMostPairs];  // turns per position, for each pair

  __device__ __forceinline__ void angle(int pair, int64_t position, float& cosine, float& sine) const {
    const double all = static_cast<double>(position) * turns[pair], part = all - floor(all + 0.5);
    const auto angle = static_cast<float>(part * 6.283185307179586);
    cosine = magnitude * cosf(angle);
    sine = magnitude * sign * sinf(angle);
  }
};

template <typename T>
__device__ __forceinline__ void turn_pair(T& p, T& q, float cosine, float sine) {
  const float u = widen(p), v = widen(q);
  p = narrow<T>(
      fmaf(u, cosine, -(v * sine)));  // explicit fmaf, so that compilers do not choose which product is rounded
  q = narrow<T>(fmaf(u, sine, v * cosine));
}

// Returns false if there are more pairs than kMostPairs.
template <int kMostPairs>
bool fill_turns(RotaryTurns<kMostPairs>& r, const KernelCall& call) {
  const kernels::RotaryFrequencies frequencies(call.attributes, call.ins[0].size("head_dim"));
  if (frequencies.dims() > 2 * kMostPairs) return false;
  r.half = static_cast<int>(frequencies.dims() / 2);
  for (int i = 0; i < r.half; ++i) r.turns[i] = frequencies[i] / (2 * std::numbers::pi);
  r.magnitude = static_cast<float>(frequencies.magnitude());
  r.sign = call.attributes.integer("inverse") != 0 ? -1 : 1;
  return true;
}

}  // namespace kintsugi::KINTSUGI_GPU

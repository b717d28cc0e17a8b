// Shared by losses: scalars in fp64 or fp32, and the terms of labelled tokens.
#pragma once

#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/places.h"

namespace kintsugi::KINTSUGI_GPU {
// A loss, and its final divisor.
struct LossTerm {
  double loss = 0, count = 0;
};

inline bool is_wide_scalar(std::string_view kind, const View& v) {
  base::require(v.elements() == 1 && (v.dtype() == DType::f64 || v.dtype() == DType::f32), "kernel",
                "{} with a scalar of {}", kind, name_of(v.dtype()));
  return v.dtype() == DType::f64;
}

// A scalar input: fp64 or fp32.
struct LossScalar {
  const void* data;
  bool wide;
  __device__ float operator()() const {
    return wide ? static_cast<float>(*static_cast<const double*>(data)) : *static_cast<const float*>(data);
  }
};
inline LossScalar loss_scalar(std::string_view kind, const View& v) {
  return {v.data, is_wide_scalar(kind, v)};
}

__device__ inline float one_of(const AnyData& x, int64_t at) {
  float value[1];
  x.load(value, at);
  return value[0];
}

// lse, target, labels: [batch seq]
struct TokenTerms {
  AnyData lse, target;
  const int32_t* labels;
  Places places;

  __device__ bool counts(int64_t i) const { return labels[i] >= 0 && places.real(i); }
  __device__ LossTerm operator()(int64_t i) const {
    if (!counts(i)) return {};
    return {static_cast<double>(one_of(lse, i)) - static_cast<double>(one_of(target, i)), 1};
  }
};

}  // namespace kintsugi::KINTSUGI_GPU

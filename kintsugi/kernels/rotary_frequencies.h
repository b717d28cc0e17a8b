// The rotation frequency of each pair in rotary embedding, for every kernel set. The attributes are those of `rotary`
// in docs/operations.md.
#pragma once

#include <cstdint>

#include "kintsugi/tensor/attributes.h"

namespace kintsugi::kernels {

// Frequencies scaled for longer texts: "llama3" as in Llama 3.1, "yarn" (Peng et al. 2023, "YaRN", sections 3.2 and
// 3.4), "list" with a divisor per pair (Ding et al. 2024, "LongRoPE"). Does not allocate.
class RotaryFrequencies {
 public:
  // Throws InternalError if dims are not pairs within head_dim, or the scaling is unknown or incomplete. The attributes
  // must outlive this.
  RotaryFrequencies(const tensor::Attributes& attributes, int64_t head_dim);

  int64_t dims() const { return dims_; }           // leading dims of head_dim that are rotated
  double magnitude() const { return magnitude_; }  // factor of cosine and sine
  // Radians per position of pair i, i from 0 to dims() / 2.
  double operator[](int64_t i) const;

 private:
  enum class Scaling { none, linear, llama3, yarn, list };

  // YaRN: the pair that makes `times` turns over the original length, as a fraction.
  double pair_of(double times) const;

  const tensor::Attributes& attributes_;
  int64_t dims_;
  double theta_, magnitude_;
  Scaling scaling_ = Scaling::none;
  double factor_ = 1;
  double low_ = 0, high_ = 0;  // llama3: wavelengths between which both are interpolated; yarn: pairs
};

// The number of dims of head_dim that are rotated.
int64_t rotary_dims(const tensor::Attributes& attributes, int64_t head_dim);

}  // namespace kintsugi::kernels

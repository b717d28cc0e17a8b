// How fast rotary embedding turns each pair of a head, for every set of kernels. The attributes are those of `rotary`
// in docs/operations.md.
#pragma once

#include <cstdint>

#include "kintsugi/tensor/attributes.h"

namespace kintsugi::kernels {

// Frequencies scaled for longer texts: "llama3" as Llama 3.1 has it, "yarn" (Peng et al. 2023, "YaRN", sections 3.2 and
// 3.4), "list" with a divisor for each (Ding et al. 2024, "LongRoPE"). Nothing is allocated.
class RotaryFrequencies {
 public:
  // InternalError if dims are not pairs of head_dim, or the scaling is not known or incomplete. The attributes outlive
  // this.
  RotaryFrequencies(const tensor::Attributes& attributes, int64_t head_dim);

  int64_t dims() const { return dims_; }           // of head_dim that are turned, the first ones
  double magnitude() const { return magnitude_; }  // by which cosine and sine are multiplied
  // Radians per position of pair i, i from 0 to dims() / 2.
  double operator[](int64_t i) const;

 private:
  enum class Scaling { none, linear, llama3, yarn, list };

  // Yarn: the pair that turns `times` times over the original length, as a fraction.
  double pair_of(double times) const;

  const tensor::Attributes& attributes_;
  int64_t dims_;
  double theta_, magnitude_;
  Scaling scaling_ = Scaling::none;
  double factor_ = 1;
  double low_ = 0, high_ = 0;  // llama3: wavelengths between which both are mixed; yarn: pairs
};

// The dims of head_dim that are turned.
int64_t rotary_dims(const tensor::Attributes& attributes, int64_t head_dim);

}  // namespace kintsugi::kernels

// The attributes of `rotary` by which a model rotates queries and keys.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/tensor/attributes.h"

namespace kintsugi::models {

// With the model's scaling; `positions` is the number of positions visible to the pass, by which longrope selects its
// factors.
tensor::Attributes rotary(const config::Model& model, int64_t positions);
// For layers with a window that have their own angles.
tensor::Attributes unscaled_rotary(const config::Model& model);

// The factor of cosine and sine in YaRN (Peng et al. 2023, section 3.4) and LongRoPE (Ding et al. 2024), for a context
// `factor` times the original; 1 where it is not longer. `by`: the coefficient of the logarithm, where a model
// specifies it.
double yarn_magnitude(double factor, double by = 1.0);
double longrope_magnitude(double factor, double original);

}  // namespace kintsugi::models

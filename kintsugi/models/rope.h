// The attributes of `rotary` by which a model turns queries and keys.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/tensor/attributes.h"

namespace kintsugi::models {

// With the scaling of the model; `positions` is how many the pass can see, by which longrope chooses its factors.
tensor::Attributes rotary(const config::Model& model, int64_t positions);
// Of layers with a window whose angles are their own.
tensor::Attributes unscaled_rotary(const config::Model& model);

// What YaRN (Peng et al. 2023, section 3.4) and LongRoPE (Ding et al. 2024) multiply cosine and sine by, for a context
// that is `factor` times the original; 1 where it is not longer. `by`: of the logarithm, where a model says.
double yarn_magnitude(double factor, double by = 1.0);
double longrope_magnitude(double factor, double original);

}  // namespace kintsugi::models

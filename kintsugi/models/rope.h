// The attributes of `rotary` by which a model turns queries and keys.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/tensor/attributes.h"

namespace kintsugi::models {

// With the scaling of the model; `positions` is how many the pass can see, by which longrope chooses its factors.
tensor::Attributes rotary(const config::Model& model, int64_t positions);
// Of layers with a window whose angles are their own.
tensor::Attributes unscaled_rotary(const config::Model& model);

}  // namespace kintsugi::models

// Upcycling: the weights of a dense model as those of a mixture of experts, each expert a copy of the dense
// feed-forward layer (Komatsuzaki et al. 2023, "Sparse upcycling").
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::exchange {

// Whether a run of `model` that starts from the weights of `dense` is upcycled.
bool is_upcycled(const config::Model& model, const config::Model& dense);

// Whether a weight of a mixture of experts has no counterpart in a dense model: that of a router.
bool is_of_router(std::string_view name);

// The weights of `dense`; those of experts of `model` are repeated per expert. Routers are absent.
std::unique_ptr<checkpoint::TensorSource> upcycled(std::unique_ptr<checkpoint::TensorSource> dense,
                                                   const config::Model& model);

}  // namespace kintsugi::exchange

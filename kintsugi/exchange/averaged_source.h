// The moving averages of a checkpoint's weights ([train] ema_decay) in place of the weights.
#pragma once

#include <memory>

#include "kintsugi/checkpoint/tensor_source.h"

namespace kintsugi::exchange {

// Weights without an average, such as frozen ones, are as stored. Throws UserError if there is no average at all.
std::unique_ptr<checkpoint::TensorSource> with_averages(std::unique_ptr<checkpoint::TensorSource> weights);

}  // namespace kintsugi::exchange

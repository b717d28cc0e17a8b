// The learning rate of a step.
#pragma once

#include <cstdint>

#include "kintsugi/config/settings.h"

namespace kintsugi::train {

// For step 0, 1, ... Warm-up is linear and ends at learning_rate; then, up to decay_steps, cosine (Loshchilov, Hutter
// 2017, equation 5, one cycle) or linear down to min_learning_rate, constant, 1 / sqrt(step) (Vaswani et al. 2017,
// section 5.3), multiplied by decay_factor every decay_every steps with min_learning_rate as the floor, or constant and
// then linear over the last cooldown_steps ("wsd": Hu et al. 2024, section 4.2). "one_cycle" (Smith, Topin 2018) rises
// as a cosine from a 25th of learning_rate and falls as a cosine. All grow with the
// samples of the step over base_batch as scale_learning_rate says: linear (Goyal et al. 2017, section 2.1) or its
// square root.
double learning_rate(const config::Train& train, int64_t step);

}  // namespace kintsugi::train

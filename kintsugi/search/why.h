// What a search has found, in a sentence.
#pragma once

#include <cstdint>
#include <string>

#include "kintsugi/search/search.h"

namespace kintsugi::search {

// Which strategy and why: what of the model does not fit on one device, and for each axis in use what it does about
// that and which part of the step it costs. `states`: bytes of the weights, gradients and optimizer of the whole model.
std::string why(const Tried& best, int64_t states, const simulate::Cluster& cluster, int64_t limit);

// One line: the least that a rank needs, in which layout, and what would make it fit.
std::string nothing_fits(const Found& found, const simulate::Cluster& cluster, int64_t devices, int64_t limit);

}  // namespace kintsugi::search

// Summarizes the result of a search in a sentence.
#pragma once

#include <cstdint>
#include <string>

#include "kintsugi/search/search.h"

namespace kintsugi::search {

// Which strategy and why: what part of the model does not fit on one device, and for each axis in use how it helps and
// which share of the step it costs. `states`: bytes of weights, gradients and optimizer states of the whole model.
std::string why(const Tried& best, int64_t states, const simulate::Cluster& cluster, int64_t limit);

// One line: the least memory that a rank needs, in which layout, and what would make it fit.
std::string nothing_fits(const Found& found, const simulate::Cluster& cluster, int64_t devices, int64_t limit);

}  // namespace kintsugi::search

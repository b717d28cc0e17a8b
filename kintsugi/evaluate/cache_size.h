// Sizes of the key and value caches of generated texts.
#pragma once

#include <cstdint>

#include "kintsugi/config/settings.h"

namespace kintsugi::evaluate {

// Bytes of the caches of one text, of all ranks together.
int64_t cache_bytes(const config::Settings& settings, int64_t positions);

// Positions of each of `texts` texts where the user names no number: those of the model, but no more than 8,192 if the
// caches of all texts would exceed 4 GiB.
int64_t default_positions(const config::Settings& settings, int64_t texts);

// Number of texts, at most `most`, whose caches fit into 4 GiB; at least 1.
int64_t texts_that_fit(const config::Settings& settings, int64_t positions, int64_t most);

}  // namespace kintsugi::evaluate

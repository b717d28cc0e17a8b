// The part of resolve() for [parallel] and for the batch that its ranks divide.
#pragma once

#include <cstdint>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

void derive_parallel(Given& given, int64_t cores);
void derive_micro_batch(Given& given);  // after derive_parallel()

void check_parallel(const Given& given);
void check_batch(const Given& given);
// Warns of keys without effect, and of ranks that share cores.
void warn_of_parallel(Resolved& given, int64_t cores);

}  // namespace kintsugi::config

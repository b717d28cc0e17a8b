// Bounds of what a process of ranks is asked for.
#pragma once

#include <chrono>
#include <cstdint>

namespace kintsugi::comm {

// UserError where so many ranks cannot be threads of one process; their communicators grow with the square.
void require_threads(int64_t ranks);

// [parallel] timeout_seconds as the limit of a wait: at least a millisecond, and at most 30 years, which a clock can
// add to its time.
std::chrono::milliseconds time_limit(double seconds);

}  // namespace kintsugi::comm

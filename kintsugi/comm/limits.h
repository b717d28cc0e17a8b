// Limits on what a process of ranks may be asked for.
#pragma once

#include <chrono>
#include <cstdint>

namespace kintsugi::comm {

// Throws UserError if that many ranks cannot be threads of one process: their communicators grow quadratically.
void require_threads(int64_t ranks);

// Converts [parallel] timeout_seconds to the time limit of a wait, clamped to [1 ms, 30 years] so that it can be added
// to a clock's time.
std::chrono::milliseconds time_limit(double seconds);

}  // namespace kintsugi::comm

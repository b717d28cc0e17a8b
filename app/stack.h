// Ensures the stack size that the command needs, whatever limit it was started with.
#pragma once

#include <functional>

namespace kintsugi::app {

// Returns f(). If the stack limit (ulimit -s) is below 8 MiB, raises it, also for threads started later; if that is not
// permitted, runs f on a thread with a larger stack.
int with_stack(const std::function<int()>& f);

}  // namespace kintsugi::app

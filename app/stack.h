// The stack that the command needs, whatever limit it was started with.
#pragma once

#include <functional>

namespace kintsugi::app {

// Returns f(). Where the limit of the stack (ulimit -s) is below 8 MiB, it is raised, and threads that start later have
// that much; where the system does not allow that, f runs on a thread with a stack of its own.
int with_stack(const std::function<int()>& f);

}  // namespace kintsugi::app

// Running out of memory.
#pragma once

#include <cstddef>
#include <new>
#include <string_view>

namespace kintsugi::base {

// The message for a std::bad_alloc.
inline constexpr std::string_view kNoMemory =
    "[memory] the system has no more memory; a smaller model, micro_batch or sequence needs less";

// Whether the system would give this process that much more memory now. For libraries that do not check allocations.
bool can_allocate(size_t bytes);

// For what may be left undone where the system gives no more memory: a line that tells how far work is, what a
// destructor tidies up.
template <typename F>
void if_memory_lasts(F&& f) {
  try {
    f();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace kintsugi::base

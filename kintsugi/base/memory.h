// Out-of-memory handling.
#pragma once

#include <cstddef>
#include <new>
#include <string_view>

namespace kintsugi::base {

// The message for a std::bad_alloc.
inline constexpr std::string_view kNoMemory =
    "[memory] the system has no more memory; a smaller model, micro_batch or sequence needs less";

// Whether this process could allocate that much more memory now. For libraries that do not check allocations.
bool can_allocate(size_t bytes);

// Runs work that may be skipped if memory runs out: progress lines, cleanup in destructors.
template <typename F>
void if_memory_lasts(F&& f) {
  try {
    f();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace kintsugi::base

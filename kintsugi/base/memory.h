// Running out of memory.
#pragma once

#include <cstddef>
#include <string_view>

namespace kintsugi::base {

// The message for a std::bad_alloc.
inline constexpr std::string_view kNoMemory =
    "[memory] the system has no more memory; a smaller model, micro_batch or sequence needs less";

// Whether the system would give this process that much more memory now. For libraries that do not check allocations.
bool can_allocate(size_t bytes);

}  // namespace kintsugi::base

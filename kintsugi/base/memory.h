// Memory that the system does not give.
#pragma once

#include <cstddef>
#include <string_view>

namespace kintsugi::base {

// What is said of a std::bad_alloc.
inline constexpr std::string_view kNoMemory =
    "[memory] the system has no more memory; a smaller model, micro_batch or sequence needs less";

// Whether the system would give this process that much more now. For libraries that do not look themselves.
bool has_room(size_t bytes);

}  // namespace kintsugi::base

// Memory bandwidth, to relate kernels to the machine's limit.
#pragma once

#include <cstdint>

#include "kintsugi/base/thread_team.h"

namespace kintsugi::kernels::host {

// Bytes per second that the whole team reads and writes when copying `bytes`, which should exceed the caches and be at
// least 1 MiB per thread. Allocates twice as much; takes about 100 ms.
double measure_memory_bandwidth(base::ThreadTeam& team, int64_t bytes);

}  // namespace kintsugi::kernels::host

// The speed of memory, for the share of the machine's limit that a kernel reaches.
#pragma once

#include <cstdint>

#include "kintsugi/base/thread_team.h"

namespace kintsugi::kernels::cpu {

// Bytes per second that the whole team reads and writes when it copies `bytes` of memory, which should be more than
// caches hold, and at least 1 MiB for each thread. Allocates twice as many; takes about 100 ms.
double measure_memory_bandwidth(base::ThreadTeam& team, int64_t bytes);

}  // namespace kintsugi::kernels::cpu

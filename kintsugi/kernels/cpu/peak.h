// The peak performance of the processor, for the share of peak that a run reports.
#pragma once

#include <string>

#include "kintsugi/base/thread_team.h"

namespace kintsugi::kernels::cpu {

// fp32 operations per second of the whole team, multiplications and additions in registers alone; takes about 50 ms.
double measure_peak_flops(base::ThreadTeam& team);

// The SIMD units in use, by Highway's name: "AVX2", "AVX3" (AVX-512), "NEON", ...
std::string simd_target();

}  // namespace kintsugi::kernels::cpu

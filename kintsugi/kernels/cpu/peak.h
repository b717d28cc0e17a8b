// The peak performance of the processor, for the share of peak that a run reports.
#pragma once

#include <string>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

// Operations per second of the whole team in the unit that products of this dtype use, multiplications and additions;
// takes about 50 ms. bf16: that of bf16_unit(). Any other: fp32, in registers alone.
double measure_peak_flops(base::ThreadTeam& team, tensor::DType dtype);

// Of one unit for bf16, on tiles that lie in the first level cache.
double measure_peak_flops(base::ThreadTeam& team, const Bf16Unit& unit);

// The SIMD units in use, by Highway's name: "AVX2", "AVX3" (AVX-512), "NEON", ...
std::string simd_target();

}  // namespace kintsugi::kernels::cpu

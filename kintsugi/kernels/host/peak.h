// Peak FLOP/s of the CPU, to report the fraction of peak of a run.
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::host {

// Operations per second of the whole team in the unit that matmuls of this dtype use, counting multiplications and
// additions; takes about 50 ms. bf16: of cpu::bf16_unit(). Others: fp32, in registers only.
double measure_peak_flops(base::ThreadTeam& team, tensor::DType dtype);

// For one bf16 unit, on tiles in the L1 cache.
double measure_peak_flops(base::ThreadTeam& team, const cpu::Bf16Unit& unit);

// The SIMD target in use, by Highway's name: "AVX2", "AVX3" (AVX-512), "NEON", ...
std::string simd_target();

// The bf16 unit in use (cpu/bf16_unit.h). Ranks with different units round matmuls differently.
std::string_view bf16_unit_name();

}  // namespace kintsugi::kernels::host

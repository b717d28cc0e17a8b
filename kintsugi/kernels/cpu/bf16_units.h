// The list of units, and functions shared by x86 units.
#pragma once

#include "kintsugi/kernels/cpu/bf16_unit.h"

namespace kintsugi::kernels::cpu {

// Null if the CPU or the system does not provide the unit.
const Bf16Unit* amx_unit();
const Bf16Unit* avx512_bf16_unit();
const Bf16Unit* plain_unit();  // always available

// With AVX-512 BW.
void pack_a_avx512(const Bf16Panel& panel, tensor::bf16* to);
void pack_b_avx512(const Bf16Panel& panel, tensor::bf16* to);

}  // namespace kintsugi::kernels::cpu

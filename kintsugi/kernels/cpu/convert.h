// Conversion between fp32 and storage dtypes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

// out[i] = in[i] for n elements of a fast dtype (is_fast), on the calling thread.
void widen(tensor::DType dtype, const std::byte* in, float* out, int64_t n);

// out[i] = codes[i] * scale[i % columns], for `rows` rows, on the calling thread.
void widen_codes(const int8_t* codes, const float* scale, int64_t rows, int64_t columns, float* out);

// out[i] = in[i] rounded, or out[i] += in[i] if `add`.
void narrow(tensor::DType dtype, const float* in, std::byte* out, int64_t n, bool add = false);

}  // namespace kintsugi::kernels::cpu

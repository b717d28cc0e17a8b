// Reading elements of a tensor that lie at regular distances.
#pragma once

#include <cstddef>
#include <vector>

#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/exchange/strides.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

// What is in memory at one time while a tensor is read or written in another order.
inline constexpr int64_t kStagedBytes = int64_t{16} << 20;

// Reads the elements from number `first` on that `dims` select, to `out` as `dtype`; the file is read in runs that are
// as long as they lie together, in ascending order, at most kStagedBytes at a time. `staging` is memory to be used, and
// to be used again.
void read_strided(const checkpoint::TensorInFile& tensor, int64_t first, const std::vector<CopyDim>& dims,
                  tensor::DType dtype, std::byte* out, std::vector<std::byte>& staging);

}  // namespace kintsugi::exchange

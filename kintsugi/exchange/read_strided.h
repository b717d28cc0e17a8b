// Reading elements of a tensor that lie at regular distances.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/exchange/strides.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

// What is in memory at one time while a tensor is written in another order.
inline constexpr int64_t kPartBytes = int64_t{16} << 20;

// Of a tensor, the elements from number `first` on that `dims` select.
struct StridedPart {
  const checkpoint::TensorInFile& tensor;
  int64_t first = 0;
  const std::vector<CopyDim>& dims;
};

// Memory to be used, and to be used again, and who sees each element as it is in the file.
struct Staging {
  std::vector<std::byte> memory;
  std::function<void(std::span<const std::byte>)> see = {};
};

// Reads the part to `out` as `dtype`; the file is read in runs that are as long as they lie together, in ascending
// order. Takes up to 1 MiB of staging memory.
void read_strided(const StridedPart& part, tensor::DType dtype, std::byte* out, Staging& staging);

}  // namespace kintsugi::exchange

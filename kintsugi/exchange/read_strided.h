// Strided reads of tensor elements.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/exchange/strides.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

// Maximum memory used while writing a tensor in another order.
inline constexpr int64_t kPartBytes = int64_t{16} << 20;

// The elements of a tensor from index `first` on, selected by `dims`.
struct StridedPart {
  const checkpoint::TensorInFile& tensor;
  int64_t first = 0;
  const std::vector<CopyDim>& dims;
};

// Reusable memory, and an observer of each element as stored in the file.
struct Staging {
  std::vector<std::byte> memory;
  std::function<void(std::span<const std::byte>)> see = {};
};

// Reads the part to `out` as `dtype`, in maximal contiguous runs of the file in ascending order. Uses up to 1 MiB of
// staging memory.
void read_strided(const StridedPart& part, tensor::DType dtype, std::byte* out, Staging& staging);

}  // namespace kintsugi::exchange

// Matmul epilogue, applied to elements once they are stored, while they are still in a cache: an activation, or the
// gradient of one. Bit-identical to the separate operation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::cpu {

// y = f(x), or y = f'(x) * y; x and y have the same layout, and may alias.
struct Epilogue {
  enum class Function : uint8_t { none, gelu_tanh, gelu_erf, silu, relu, relu2, tanh };

  Function function = Function::none;
  bool slope = false;
  tensor::DType dtype = tensor::DType::f32;
  std::byte* x = nullptr;
  std::byte* y = nullptr;

  explicit operator bool() const { return function != Function::none; }
  // Where the matmul is stored.
  std::byte* product() const { return slope ? y : x; }
  // Offset by that many elements.
  Epilogue at(int64_t elements) const;
};

// For a call of `contract`: y alone if it has none.
Epilogue epilogue_of(const KernelCall& call);

// Applies it to rows of `columns` elements with stride `step`, from element `first`.
void apply(const Epilogue& e, int64_t first, int64_t rows, int64_t step, int64_t columns);

}  // namespace kintsugi::kernels::cpu

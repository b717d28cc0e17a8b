// What a product does to its elements once they are stored, while they are still in a cache: an activation, or the
// gradient of one. The bits are those of the operation alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::cpu {

// y = f(x), or y = f'(x) * y; x and y lie alike, and may be the same memory.
struct Epilogue {
  enum class Function : uint8_t { none, gelu_tanh, gelu_erf, silu, relu, relu2, tanh };

  Function function = Function::none;
  bool slope = false;
  tensor::DType dtype = tensor::DType::f32;
  std::byte* x = nullptr;
  std::byte* y = nullptr;

  explicit operator bool() const { return function != Function::none; }
  // Where the product is stored.
  std::byte* product() const { return slope ? y : x; }
  // The same, so many elements further.
  Epilogue at(int64_t elements) const;
};

// Of a call of `contract`: y alone if it has none.
Epilogue epilogue_of(const KernelCall& call);

// To rows of `columns` elements, `step` apart, from element `first` on.
void apply(const Epilogue& e, int64_t first, int64_t rows, int64_t step, int64_t columns);

}  // namespace kintsugi::kernels::cpu

// Memory viewed as a value: dense, row-major. Non-owning.
#pragma once

#include <cstddef>
#include <span>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::tensor {

struct View {
  std::byte* data = nullptr;
  Type type;

  const Shape& shape() const { return type.shape; }
  DType dtype() const { return type.dtype; }
  int64_t elements() const { return type.shape.elements(); }
  int64_t size(std::string_view dim) const { return type.shape.size(dim); }

  // The elements as T, which must be the C++ type of dtype() (double, float, bf16, f16, int64_t, int32_t, ...).
  template <typename T>
  std::span<T> as() const {
    base::require(sizeof(T) == static_cast<size_t>(size_of(type.dtype)), "view", "{} elements read as {} bytes each",
                  name_of(type.dtype), sizeof(T));
    return {reinterpret_cast<T*>(data), static_cast<size_t>(elements())};
  }
};

}  // namespace kintsugi::tensor

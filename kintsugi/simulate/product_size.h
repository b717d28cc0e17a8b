// Sizes of matmuls.
#pragma once

#include <string>

#include "kintsugi/tensor/shape.h"

namespace kintsugi::simulate {

// `times` matmuls of [rows depth] by [depth columns].
struct ProductSize {
  double rows = 1, columns = 1, depth = 1, times = 1;

  double flops() const { return 2 * rows * columns * depth * times; }
  bool operator==(const ProductSize&) const = default;
};

// Sizes of a matmul by dim names: dims of both operands that the output lacks are the depth. The output may have only
// some columns of b.
ProductSize product_size(const tensor::Shape& a, const tensor::Shape& b, const tensor::Shape& y);

// Memory layout of the operands: "n" if the depth of the first, or the columns of the second, are contiguous; "t" if
// its rows, or the depth of the second, are. "nn", "nt", "tn", "tt".
std::string product_form(const tensor::Shape& a, const tensor::Shape& b);

}  // namespace kintsugi::simulate

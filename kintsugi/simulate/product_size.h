// The sizes of matrix products.
#pragma once

#include <string>

#include "kintsugi/tensor/shape.h"

namespace kintsugi::simulate {

// rows x depth times depth x columns, so many times.
struct ProductSize {
  double rows = 1, columns = 1, depth = 1, times = 1;

  double flops() const { return 2 * rows * columns * depth * times; }
  bool operator==(const ProductSize&) const = default;
};

// Sizes of a product by the names of the dims: of both operands and not of the output is the depth. Of b, the output
// may have some columns alone.
ProductSize product_size(const tensor::Shape& a, const tensor::Shape& b, const tensor::Shape& y);

// How the operands lie in memory: "n" where neighbours are along the depth of the first and the columns of the second,
// "t" where they are along its rows, or the depth of the second. "nn", "nt", "tn", "tt".
std::string product_form(const tensor::Shape& a, const tensor::Shape& b);

}  // namespace kintsugi::simulate

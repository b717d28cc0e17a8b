// Maps contractions of named dims to batched matrix products, and those to one gemm call.
#pragma once

#include <array>
#include <optional>

#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::KINTSUGI_GPU {

// One or several adjacent dims of a contraction, with strides in elements in each operand; 0 in those that lack it.
struct ContractDim {
  int64_t size = 1, a = 0, b = 0, y = 0, bias = 0;
};

constexpr int kMostContractDims = 12;

struct ContractDims {
  std::array<ContractDim, kMostContractDims> at = {};
  int count = 0;

  int64_t size() const {
    int64_t n = 1;
    for (int i = 0; i < count; ++i) n *= at[static_cast<size_t>(i)].size;
    return n;
  }
  // Throws InternalError if there are too many.
  void add(const ContractDim& dim);
};

// Dims merged if adjacent in all operands; sizes of 1 are dropped.
struct ContractLists {
  ContractDims batch;    // in a, b and y
  ContractDims rows;     // in a and y
  ContractDims columns;  // in b and y
  ContractDims summed;   // in a and b
  ContractDims lone;     // in only one of a and b: summed too
};

// bias: null if there is none.
ContractLists contract_lists(const tensor::Shape& a, const tensor::Shape& b, const tensor::Shape& y,
                             const tensor::Shape* bias);

// The product with its sizes and strides, without memory and dtypes; `swapped`: a of the product is the operand b.
// Nothing if it is not a matrix product, or consists of many tiny ones.
struct ContractProduct {
  Gemm gemm;
  bool swapped = false;
};
std::optional<ContractProduct> contract_product(const ContractLists& lists);

}  // namespace kintsugi::KINTSUGI_GPU

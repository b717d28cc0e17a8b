// Helpers of the reference kernels: operands as lists of doubles, and offset tables for iterating over the dims of
// another operand.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::reference {

using tensor::DimIndex;
using tensor::Shape;
using tensor::View;

// The elements of a floating-point operand or its int8 codes, in its own order. A copy, so that in-place kernels read
// it unchanged.
std::vector<double> load(const View& x);
// The same, times `scale` (dims of x) if there is one.
std::vector<double> load_scaled(const View& x, const View& scale);
// The elements of an int32 operand.
std::vector<int64_t> load_integers(const View& x);
// The element of a floating-point scalar.
double load_scalar(const View& x);

// An operand; if the call has the attribute "first", restricted to the columns (last dim) of `y`, from that one on.
struct Loaded {
  Shape shape;
  std::vector<double> elements;
};
Loaded load_columns(const KernelCall& call, const View& x, const Shape& y);

// Stores `values` in an output, or accumulates if the call does, rounding once to its dtype.
void store(const KernelCall& call, size_t output, std::span<const double> values);

// For each point of `over`, in row-major order, the offset of its element in a dense `shape`. Dims that `shape` lacks
// are ignored; dims that only `shape` has are at index 0.
std::vector<int64_t> offsets(const Shape& over, const Shape& shape);

// Stride of `dim`; 0 if the shape lacks it.
int64_t stride(const Shape& shape, std::string_view dim);

// width(): size of the last dim; rows(): product of the dims before it.
int64_t width(const Shape& shape);
int64_t rows(const Shape& shape);

// The global index of each local position, -1 for padding; and the inverse, -1 for positions that this block lacks.
std::vector<int64_t> global_of_local(const DimIndex& index);
std::vector<int64_t> local_of_global(const DimIndex& index);

// The entry of a table, or -1 if `i` is out of range.
inline int64_t at_or_absent(const std::vector<int64_t>& table, int64_t i) {
  return i >= 0 && i < static_cast<int64_t>(table.size()) ? table[static_cast<size_t>(i)] : -1;
}

// For each element of `shape`, its position in the whole (mixed radix over the whole sizes of its dims, with
// `numbers.batch_offset` added to the index of `batch`), or -1 if any dim is padding.
std::vector<int64_t> positions_in_whole(const KernelCall& call, const Shape& shape);

// Dropout factors by position in the whole: 0, or 1 / (1 - p) if kept.
class DropoutMask {
 public:
  DropoutMask(const KernelCall& call, double p, std::string_view key);
  double operator()(int64_t position) const;

 private:
  std::array<uint32_t, 2> key_;
  uint64_t step_;
  double p_;
};

}  // namespace kintsugi::kernels::reference

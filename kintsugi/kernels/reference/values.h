// Helpers of the reference kernels: operands as lists of doubles, and tables of the positions of one operand's
// elements when iterating over the dims of another.
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

// The elements of a floating operand, in its own order. A copy: a kernel that works in place reads it unchanged.
std::vector<double> load(const View& x);
// The elements of an int32 operand.
std::vector<int64_t> load_integers(const View& x);
// The only element of a floating scalar.
double load_scalar(const View& x);

// An operand, or where the call has the attribute "first", those of its columns (its last dim) that `y` has, from that
// one on.
struct Loaded {
  Shape shape;
  std::vector<double> elements;
};
Loaded load_columns(const KernelCall& call, const View& x, const Shape& y);

// Stores `values` in an output, or adds them to it if the call accumulates, rounding once to its dtype.
void store(const KernelCall& call, size_t output, std::span<const double> values);

// For each point of `over`, in row-major order, the position of the element of a dense `shape` with the same dims. A
// dim that `shape` lacks does not change it; one that only `shape` has is at index 0.
std::vector<int64_t> offsets(const Shape& over, const Shape& shape);

// Elements between neighbours along `dim`, 0 where the shape lacks it.
int64_t stride(const Shape& shape, std::string_view dim);

// The size of the last dim, and the product of those before it.
int64_t width(const Shape& shape);
int64_t rows(const Shape& shape);

// The global index of each local position, -1 for padding; and the inverse, -1 for those that this block does not
// have.
std::vector<int64_t> global_of_local(const DimIndex& index);
std::vector<int64_t> local_of_global(const DimIndex& index);

// The entry of a table, or -1 where `i` is outside of it.
inline int64_t at_or_absent(const std::vector<int64_t>& table, int64_t i) {
  return i >= 0 && i < static_cast<int64_t>(table.size()) ? table[static_cast<size_t>(i)] : -1;
}

// For each element of `shape`, its position in the whole (mixed radix over the whole sizes of its dims, with
// `numbers.batch_offset` added to the index of `batch`), or -1 where any dim is at padding.
std::vector<int64_t> positions_in_whole(const KernelCall& call, const Shape& shape);

// Dropout's factors for elements of a value, by their positions in the whole: 0, or 1 / (1 - p) where kept.
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

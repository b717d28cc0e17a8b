#include "kintsugi/kernels/cpu/contract_layout.h"

#include <utility>

namespace kintsugi::kernels::cpu {
namespace {

using tensor::Dim;
using tensor::Shape;

constexpr size_t kMaxDims = 12;

// Dims to merge into one, in order.
struct Group {
  std::array<const Dim*, kMaxDims> dims = {};
  size_t count = 0;

  bool add(const Dim& dim) {
    if (count == kMaxDims) return false;
    dims[count++] = &dim;
    return true;
  }
  int64_t size() const {
    int64_t n = 1;
    for (size_t i = 0; i < count; ++i) n *= dims[i]->size;
    return n;
  }
};

int64_t stride_of(const Shape& shape, const Dim& dim) {
  const int at = shape.find(dim.name);
  return at < 0 ? 0 : shape.stride(static_cast<size_t>(at));
}

// The stride of the group as a single dim, if possible: each dim's stride must equal the extent of the next inner one.
std::optional<int64_t> merged_stride(const Group& group, const Shape& shape) {
  if (group.count == 0) return 0;
  const int64_t last = stride_of(shape, *group.dims[group.count - 1]);
  int64_t expected = last;
  for (size_t i = group.count; i-- > 0;) {
    if (stride_of(shape, *group.dims[i]) != expected) return std::nullopt;
    expected *= group.dims[i]->size;
  }
  return last;
}

bool is_matrix(int64_t rows, int64_t row, int64_t columns, int64_t column) {
  return column == 1 || row == 1 || rows == 1 || columns == 1;
}

// a's own dims are the rows of y.
std::optional<ContractLayout> layout_of(const Shape& a, const Shape& b, const Shape& y, const Shape* bias) {
  Group rows, columns, summed, batch;
  bool fits = true;
  for (const Dim& dim : y) {
    if (dim.size == 1) continue;
    const bool in_a = a.has(dim.name), in_b = b.has(dim.name);
    if (!in_a && !in_b) return std::nullopt;
    fits = fits && (in_a && in_b ? batch : in_a ? rows : columns).add(dim);
  }
  for (const Dim& dim : a) {
    if (dim.size == 1 || y.has(dim.name)) continue;
    if (!b.has(dim.name)) return std::nullopt;
    fits = fits && summed.add(dim);
  }
  for (const Dim& dim : b)
    if (dim.size != 1 && !y.has(dim.name) && !a.has(dim.name)) return std::nullopt;
  if (!fits || batch.count > kMaxBatchDims) return std::nullopt;

  const auto a_row = merged_stride(rows, a), a_column = merged_stride(summed, a), b_row = merged_stride(summed, b),
             b_column = merged_stride(columns, b), y_row = merged_stride(rows, y), y_column = merged_stride(columns, y);
  if (!a_row || !a_column || !b_row || !b_column || !y_row || !y_column) return std::nullopt;
  ContractLayout layout;
  layout.m = rows.size();
  layout.n = columns.size();
  layout.k = summed.size();
  if (layout.n != 1 && *y_column != 1) return std::nullopt;
  if (!is_matrix(layout.m, *a_row, layout.k, *a_column) || !is_matrix(layout.k, *b_row, layout.n, *b_column)) {
    return std::nullopt;
  }
  layout.a_row = *a_row, layout.a_column = *a_column;
  layout.b_row = *b_row, layout.b_column = *b_column;
  layout.y_row = *y_row;
  if (bias) {
    const auto bias_row = merged_stride(rows, *bias), bias_column = merged_stride(columns, *bias);
    if (!bias_row || !bias_column) return std::nullopt;
    layout.bias_row = *bias_row, layout.bias_column = *bias_column;
  }
  for (size_t i = 0; i < batch.count; ++i) {
    const Dim& dim = *batch.dims[i];
    layout.batch[i] = {dim.size, stride_of(a, dim), stride_of(b, dim), stride_of(y, dim),
                       bias ? stride_of(*bias, dim) : 0};
  }
  layout.num_batch = batch.count;
  return layout;
}

}  // namespace

int64_t ContractLayout::products() const {
  int64_t count = 1;
  for (size_t i = 0; i < num_batch; ++i) count *= batch[i].size;
  return count;
}

BatchDim ContractLayout::offsets(int64_t point) const {
  BatchDim offsets;
  for (size_t i = num_batch; i-- > 0;) {
    const BatchDim& dim = batch[i];
    const int64_t at = point % dim.size;
    point /= dim.size;
    offsets.a += at * dim.a, offsets.b += at * dim.b, offsets.y += at * dim.y, offsets.bias += at * dim.bias;
  }
  return offsets;
}

std::optional<ContractLayout> contract_layout(const Operands& o) {
  const Shape &a = o.ins[ContractIn::kA].shape, &b = o.ins[ContractIn::kB].shape, &y = o.outs[0].shape;
  const Shape* bias = o.ins.has(ContractIn::kBias) ? &o.ins[ContractIn::kBias].shape : nullptr;
  std::optional<ContractLayout> layout = layout_of(a, b, y, bias);
  if (layout && (layout->n > 1 || layout->m == 1)) return layout;
  // The last dim of y is one of a's: computes the transposed matmul, b^T a^T.
  std::optional<ContractLayout> other = layout_of(b, a, y, bias);
  if (!other) return layout;
  other->swapped = true;
  return other;
}

}  // namespace kintsugi::kernels::cpu

// Adafactor's second moments (Shazeer, Stern 2018, algorithms 4 and 5): of a matrix, sums over its columns (r) and over
// its rows (c), whose product over the sum of r approximates the moments; of other weights, the moments themselves. The
// attributes "matrix_batch" and "matrix_rows" are a graph::Matrix.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

// The dims of a matrix without its columns, or without its rows.
Shape side(const Shape& shape, const Attributes& a, bool of_rows) {
  const auto batch = static_cast<size_t>(a.integer("matrix_batch"));
  const size_t end = batch + static_cast<size_t>(a.integer("matrix_rows"));
  std::vector<tensor::Dim> dims;
  for (size_t i = 0; i < shape.rank(); ++i)
    if (i < batch || (i < end) == of_rows) dims.push_back(shape[i]);
  return Shape(dims);
}

DType sum_type(const Type& g) {
  return graph::wide(g.dtype);
}

}  // namespace

OpRow factored_sums() {
  return {.kind = "factored_sums",
          .ins = {"g", "factor"},
          .outs = {"row_sums", "column_sums"},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            const Type& g = ins["g"];
            return {{side(g.shape, a, true), sum_type(g)}, {side(g.shape, a, false), sum_type(g)}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 4 * elements(ins); },
          .keeps_zero = true};
}

OpRow factored_moments() {
  return {.kind = "factored_moments",
          .ins = {"r", "c", "row_sums", "column_sums", "finite", "updates"},
          .outs = {"r", "c"},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {ins["r"], ins["c"]};
          },
          .flops = per_element<8>,
          // A split of the rows leaves c whole, equal on all ranks, and a split of the columns r.
          .combine = {{"r", tensor::Combiner::max}, {"c", tensor::Combiner::max}},
          .in_place = {{"r", "r"}, {"c", "c"}}};
}

OpRow factored_direction() {
  return {.kind = "factored_direction",
          .ins = {"g", "r", "c", "r_sum", "factor", "finite"},
          .outs = {"u"},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {{ins["g"].shape, ins["r"].dtype}};
          },
          .flops = per_element<5>,
          .keeps_zero = true};
}

OpRow unfactored_direction() {
  return {.kind = "unfactored_direction",
          .ins = {"g", "v", "factor", "finite", "updates"},
          .outs = {"v", "u"},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {ins["v"], ins["v"]};
          },
          .flops = per_element<8>,
          .flat = true,
          .in_place = {{"v", "v"}}};
}

}  // namespace kintsugi::ops

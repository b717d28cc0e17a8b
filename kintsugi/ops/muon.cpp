// Muon (Jordan et al. 2024): the momentum of a matrix, orthogonalized.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow muon_momentum() {
  return {.kind = "muon_momentum",
          .ins = {"g", "m", "factor", "finite"},
          .outs = {"m", "u"},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {ins["m"], ins["m"]};
          },
          .flops = per_element<7>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"m", "m"}}};
}

// The attributes "matrix_batch" and "matrix_rows" are a graph::Matrix; "whole" names the dims of one matrix.
OpRow orthogonalize() {
  return {.kind = "orthogonalize",
          .ins = {"u"},
          .outs = {"u"},
          .family = "optimizer",
          .infer = like_first,
          .flops =
              [](Types ins, Types, const Attributes& a) {
                double rows = 1, all = 1;
                const Shape& shape = ins["u"].shape;
                const auto batch = static_cast<size_t>(a.integer("matrix_batch"));
                const size_t end = batch + static_cast<size_t>(a.integer("matrix_rows"));
                for (size_t i = 0; i < shape.rank(); ++i) {
                  all *= static_cast<double>(shape[i].size);
                  if (i >= batch && i < end) rows *= static_cast<double>(shape[i].size);
                }
                double count = 1;
                for (size_t i = 0; i < batch; ++i) count *= static_cast<double>(shape[i].size);
                const double columns = all / count / rows, least = rows < columns ? rows : columns;
                return 5 * (4 * least * all + 2 * count * least * least * least);
              },
          .keeps_zero = true};
}

}  // namespace kintsugi::ops

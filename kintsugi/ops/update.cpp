// What an update needs beside its optimizer: the norm of all gradients, and whether the update counts.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

constexpr int64_t kBlock = 1024;  // elements whose squares are added alone, whatever the layout

}  // namespace

OpRow sum_squares() {
  return {.kind = "sum_squares",
          .family = "optimizer",
          .infer = [](Types ins, const Attributes&) -> std::vector<Type> {
            return {{Shape{{"block", (ins[0].shape.elements() + kBlock - 1) / kBlock}}, DType::f64}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 2.0 * elements(ins); },
          .whole = {"block"},
          .flat = true};
}

// count, loss_scale, blocks ... -> norm, factor, finite
OpRow update_scale() {
  return {.kind = "update_scale",
          .infer = [](Types, const Attributes&) -> std::vector<Type> {
            return {scalar(), scalar(), scalar()};
          },
          .flops =
              [](Types ins, Types, const Attributes&) {
                double n = 0;
                for (const Type& t : ins) n += static_cast<double>(t.shape.elements());
                return n;
              },
          .whole = {"block"}};
}

// Dynamic scaling of the loss (Micikevicius et al. 2018, section 3.2): finite, scale, good -> scale, good
OpRow loss_scale() {
  return {.kind = "loss_scale",
          .infer = [](Types, const Attributes&) -> std::vector<Type> {
            return {scalar(), scalar()};
          },
          .in_place = {{0, 1}, {1, 2}}};
}

}  // namespace kintsugi::ops

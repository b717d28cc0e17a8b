// The parts of an update besides its optimizer: the norm of all gradients, and whether the update is skipped.
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::ops {
namespace {

constexpr int64_t kBlock = 1024;  // elements whose squares are summed separately, in every layout

// For a bucket [shard flat], the blocks of each shard; for anything else, those of all its elements in order.
Shape blocks_of(const Shape& g) {
  if (g.rank() == 2 && g[0].name == tensor::kShard && g[1].name == tensor::kFlat) {
    if (g[1].size % kBlock != 0)
      throw base::InternalError("sum_squares", "{} is not made of blocks of {}", to_string(g), kBlock);
    return {{"shard", g[0].size}, {"block", g[1].size / kBlock}};
  }
  return {{"block", (g.elements() + kBlock - 1) / kBlock}};
}
OutTypes blocks_of_each(Types ins, const Attributes&) {
  OutTypes outs;
  for (const Type& g : ins) outs.add({blocks_of(g.shape), DType::f64});
  return outs;
}

// One per element of all operands.
double all_elements(Types ins, Types, const Attributes&) {
  double n = 0;
  for (const Type& t : ins) n += static_cast<double>(t.shape.elements());
  return n;
}

}  // namespace

OpRow sum_squares() {
  return {.kind = "sum_squares",
          .ins = {rest("g")},
          .outs = {rest("blocks")},
          .family = "optimizer",
          .infer = blocks_of_each,
          .flops = [](Types ins, Types, const Attributes&) { return 2.0 * elements(ins); },
          .whole = {"block"},
          .listed = true,
          .flat = true,
          .keeps_zero = true,
          .alias = {{"block", "flat"}}};
}

// The sum of all blocks, in order.
OpRow sum_blocks() {
  return {.kind = "sum_blocks",
          .ins = {rest("blocks")},
          .outs = {"sum"},
          .infer = [](Types, const Attributes&) -> OutTypes { return {scalar()}; },
          .flops = all_elements,
          .whole = {"shard", "block"},
          .chained = true};
}

OpRow update_scale() {
  return {.kind = "update_scale",
          .ins = {"count", "loss_scale", rest("blocks")},
          .outs = {"norm", "factor", "finite"},
          .infer = [](Types, const Attributes&) -> OutTypes {
            return {scalar(), scalar(), scalar()};
          },
          .flops = all_elements,
          .whole = {"shard", "block"}};
}

// Dynamic scaling of the loss (Micikevicius et al. 2018, section 3.2).
OpRow loss_scale() {
  return {.kind = "loss_scale",
          .ins = {"finite", "scale", "good"},
          .outs = {"scale", "good"},
          .infer = [](Types, const Attributes&) -> OutTypes {
            return {scalar(), scalar()};
          },
          .in_place = {{"scale", "scale"}, {"good", "good"}}};
}

}  // namespace kintsugi::ops

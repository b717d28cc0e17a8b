// Packing and unpacking around a halo exchange between ranks (kintsugi/program/halo.h). Attribute "dim"; the call
// defines which rows.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

double no_flops(Types, Types, const Attributes&) {
  return 0.0;
}

}  // namespace

// x [... dim ...] -> packed [halo ...], the dims of x except `dim`
OpRow halo_pack() {
  return {.kind = "halo_pack", .ins = {"x"}, .outs = {"packed"}, .flops = no_flops, .keeps_zero = true};
}

// x [... dim ...], received [halo ...] -> y [... dim ...], with more or other positions.
// Or two instructions (lower/order/split_interior, kernels::Capability::parts), by the attribute "place":
//   own: without `received`; positions of y whose index is a row of received are left as they are
//   received: x is y itself, in which `own` has placed its rows; writes only positions whose index is a row of
//     received. "rows": the number of rows of the first x, after which the index counts those of received
OpRow halo_place() {
  return {.kind = "halo_place",
          .ins = {"x", tensor::optional("received")},
          .outs = {"y"},
          .flops = no_flops,
          .keeps_zero = true};
}

// As halo_place, with additions: positions of x and received are added to those of y.
OpRow halo_add() {
  return {.kind = "halo_add", .ins = {"x", tensor::optional("received")}, .outs = {"y"}, .keeps_zero = true};
}

}  // namespace kintsugi::ops

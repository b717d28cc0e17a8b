// Prepares a value for an exchange between ranks and restores it: one dim cut into consecutive parts, and joined again.
// Attribute "dim"; the call defines the positions of each part.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

double nothing(Types, Types, const Attributes&) {
  return 0.0;
}

}  // namespace

// x [... dim ...] -> y [part ... dim ...], or without `part` if there is only one part.
OpRow stack() {
  return {.kind = "stack", .ins = {"x"}, .outs = {"y"}, .flops = nothing, .keeps_zero = true};
}

// The inverse.
OpRow unstack() {
  return {.kind = "unstack", .ins = {"y"}, .outs = {"x"}, .flops = nothing, .keeps_zero = true};
}

}  // namespace kintsugi::ops

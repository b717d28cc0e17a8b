// Distributes tokens to the slots of their experts, and back. Each sample has `capacity` slots of each expert, so that
// the assignment of tokens to slots does not depend on the layout. A slot is a number, expert * capacity + place, or
// -1: none.
// x: [batch seq embed], y: [batch expert slot embed], slots, weights: [batch seq choice], counts: [batch expert]
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

constexpr std::string_view kFamily = "dispatch";

std::vector<ValueId> grad_of_weights(Graph& g, const Op& op, ValueId y, ValueId x) {
  return g.make("weigh", {y, op.in("slots"), x}, {g.type(op.in("weights"))}, op.attributes);
}

// Additions and multiplications of copied rows.
double rows(Types ins, std::string_view of, double of_each) {
  return of_each * static_cast<double>(ins["slots"].shape.elements() * ins[of].shape.size("embed"));
}

}  // namespace

// Tokens get the slots of their experts in order. For a token that finds none, the kernel throws UserError or, with
// drop = 1, assigns no slot.
OpRow assign_slots() {
  return {.kind = "assign_slots",
          .ins = {"experts"},
          .outs = {"slots", "counts"},
          .family = kFamily,
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            const tensor::Dim batch = ins["experts"].shape[0];
            return {ins["experts"], {Shape{batch, {"expert", a.integer("experts")}}, DType::i32}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return elements(ins); },
          .whole = {"seq", "choice", "expert"},
          .keeps_zero = true};
}

// y holds in each slot the row of x assigned to it, times its weight if there are weights.
OpRow dispatch() {
  return {
      .kind = "dispatch",
      .ins = {"x", "slots", optional("weights")},
      .outs = {"y"},
      .infer = [](Types ins, const Attributes& a) -> OutTypes {
        const Shape& x = ins["x"].shape;
        return {{Shape{x[0], {"expert", a.integer("experts")}, {"slot", a.integer("capacity")}, x[2]}, ins["x"].dtype}};
      },
      .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
        const ValueId x = op.in("x"), weights = op.in("weights");
        const ValueId dx = g.make("combine", {dy[0], op.in("slots"), weights}, {g.type(x)}, op.attributes)[0];
        return {dx, kNone, weights == kNone ? kNone : grad_of_weights(g, op, dy[0], x)[0]};
      },
      .flops = [](Types ins, Types, const Attributes&) { return rows(ins, "x", ins.has("weights") ? 1.0 : 0.0); },
      .whole = {"seq", "choice"},
      .linear = true,
      .keeps_zero = true,
      .light = true};
}

// x is the sum of a token's slots, times their weights if there are weights.
OpRow combine() {
  return {.kind = "combine",
          .ins = {"y", "slots", optional("weights")},
          .outs = {"x"},
          .family = kFamily,
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            const Shape &y = ins["y"].shape, &slots = ins["slots"].shape;
            return {{Shape{slots[0], slots[1], y[3]}, ins["y"].dtype}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dx) -> std::vector<ValueId> {
            const ValueId y = op.in("y"), weights = op.in("weights");
            const ValueId dy = g.make("dispatch", {dx[0], op.in("slots"), weights}, {g.type(y)}, op.attributes)[0];
            return {dy, kNone, weights == kNone ? kNone : grad_of_weights(g, op, y, dx[0])[0]};
          },
          .flops = [](Types ins, Types, const Attributes&) { return rows(ins, "y", ins.has("weights") ? 2.0 : 1.0); },
          .whole = {"seq", "choice"},
          .linear = true,
          .keeps_zero = true};
}

// The dot products of each token's row of x with those of its slots: the gradient of the weights.
OpRow weigh() {
  return {.kind = "weigh",
          .ins = {"y", "slots", "x"},
          .outs = {"dweights"},
          .family = kFamily,
          .flops = [](Types ins, Types, const Attributes&) { return rows(ins, "x", 2.0); },
          .whole = {"seq", "choice"},
          .linear = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops

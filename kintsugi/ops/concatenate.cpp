// Concatenates a and b along a dim, which has a different name in each of the three values, since a name has one size:
// the attribute "whole" names them, "of_a of_b of_y". slice: as many positions of x along that dim as y has, from the
// attribute "first"; "whole" is "of_x of_y".
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

double flops_of_copies(Types, Types, const Attributes&) {
  return 0.0;
}

OutTypes infer_joined(Types ins, const Attributes& attributes) {
  const std::vector<std::string> names = tensor::words(attributes.text("whole"));
  const Shape &a = ins["a"].shape, &b = ins["b"].shape;
  if (names.size() != 3 || !a.has(names[0]) || a.rank() != b.rank() || a.find(names[0]) != b.find(names[1]))
    throw base::InternalError("concatenate", "{} and {} along {}", to_string(a), to_string(b),
                              attributes.text("whole"));
  std::vector<tensor::Dim> dims = a.dims();
  dims[static_cast<size_t>(a.find(names[0]))] = {names[2], a.size(names[0]) + b.size(names[1])};
  return {{Shape(dims), ins["a"].dtype}};
}

std::vector<ValueId> grad_of_joined(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const std::vector<std::string> names = tensor::words(op.attributes.text("whole"));
  const auto part = [&](ValueId of, const std::string& name, int64_t first) {
    const tensor::Type type = g.type(of);
    return g.make("slice", {dy[0]}, {type}, {{"whole", names[2] + " " + name}, {"first", first}})[0];
  };
  const ValueId a = op.in("a"), b = op.in("b");
  const int64_t first = g.shape(a).size(names[0]);
  const ValueId da = part(a, names[0], 0);
  return {da, part(b, names[1], first)};
}

}  // namespace

OpRow concatenate() {
  return {.kind = "concatenate",
          .ins = {"a", "b"},
          .outs = {"y"},
          .infer = infer_joined,
          .grad = grad_of_joined,
          .flops = flops_of_copies,
          .additive = true,
          .keeps_zero = true};
}

OpRow slice() {
  return {.kind = "slice",
          .ins = {"x"},
          .outs = {"y"},
          .family = "concatenate",
          .flops = flops_of_copies,
          .additive = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops

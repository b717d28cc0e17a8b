// Matmuls of all experts of a rank, for filled slots only. One of a and b has the dim slot, or both.
// a: [batch expert slot ...], b: [expert ...] or [batch expert slot ...], counts: [batch expert]. An operand b
// [expert in out] in int8 codes is b times `scale` [expert out].
// `added`, set by lower/fuse, is added to y.
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId a = op.in("a"), b = op.in("b"), counts = op.in("counts"), scale = op.in("scale");
  const auto product = [&](ValueId left, ValueId right, ValueId like, ValueId of_right) {
    Attributes attributes = op.attributes;
    attributes.set("dims", tensor::names(g.shape(like)));
    attributes.set("dtype", std::string(tensor::name_of(g.gradient_type(like).dtype)));
    return g.op("grouped", {left, right, counts, of_right}, attributes);
  };
  const ValueId da = product(dy[0], b, a, scale);
  if (scale != kNone) return {da, kNone, kNone, kNone, kNone};  // codes have no gradient
  return {da, product(a, dy[0], b, kNone), kNone, kNone, kNone};
}

}  // namespace

OpRow grouped() {
  return {.kind = "grouped",
          .ins = {"a", "b", "counts", optional("scale"), optional("added")},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes& attributes) -> OutTypes {
            const Shape &a = ins["a"].shape, &b = ins["b"].shape;
            base::require((ins["b"].dtype == tensor::DType::i8) == ins.has("scale"), "grouped",
                          "int8 codes need scales");
            std::vector<tensor::Dim> dims;
            for (const std::string& name : tensor::words(attributes.text("dims")))
              dims.push_back({name, a.has(name) ? a.size(name) : b.size(name)});
            return {{Shape(dims), tensor::dtype_from(attributes.text("dtype"))}};
          },
          .grad = grad,
          // The expected number of filled slots is the mean number of tokens per expert.
          .flops =
              [](Types ins, Types, const Attributes& attributes) {
                double n = 2.0 * elements(ins) * attributes.number("filled");
                for (const tensor::Dim& d : ins["b"].shape)
                  if (!ins["a"].shape.has(d.name)) n *= static_cast<double>(d.size);
                return n;
              },
          .cost_class = tensor::CostClass::product,
          .linear = true,
          .keeps_zero = true,
          .accumulates = {"y"},
          .narrows = {"y"}};
}

}  // namespace kintsugi::ops

// Heads from two parts, as in multi-head latent attention (DeepSeek-V2 2024, section 2.1): the dims of a head are those
// of a, then those of b, then zeros up to the attribute "width". b may lack dims of a, the last before a head's, and is
// then repeated over them. a: [batch seq kv_heads (group) part_a], b: [batch seq (kv_heads (group)) part_b] -> y [batch
// seq kv_heads (group) head_dim]
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

OutTypes infer_heads(Types ins, const Attributes& attributes) {
  const Type& a = ins["a"];
  std::vector<tensor::Dim> dims = a.shape.dims();
  int64_t width = dims.back().size;
  dims.pop_back();
  if (ins.has("b")) {
    const Shape& b = ins["b"].shape;
    for (size_t i = 0; i + 1 < b.rank(); ++i)
      if (i >= dims.size() || b[i].name != dims[i].name || b[i].size != dims[i].size)
        throw base::InternalError("join_head_dims", "{} and {}", to_string(a.shape), to_string(b));
    width += b[b.rank() - 1].size;
  }
  base::require(width <= attributes.integer("width"), "join_head_dims", "{} dims of {}", width,
                attributes.integer("width"));
  dims.push_back({"head_dim", attributes.integer("width")});
  return {{Shape(dims), a.dtype}};
}

std::vector<ValueId> grad_of_joined_heads(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId a = op.in("a"), b = op.in("b");
  OutTypes types = {g.type(a)};
  if (b != kNone) types.add(g.type(b));
  std::vector<ValueId> dx = g.make("join_head_dims_grad", {dy[0]}, types, op.attributes);
  dx.resize(2, kNone);
  return dx;
}

// Of what was split off; only a first part alone is read by models.
std::vector<ValueId> grad_of_split(Graph& g, const Op& op, std::span<const ValueId> dparts) {
  base::require(dparts.size() == 1 || dparts[1] == kNone, "join_head_dims_grad", "the second part has a gradient");
  return {g.op("join_head_dims", {dparts[0]}, op.attributes)};
}

}  // namespace

OpRow join_head_dims() {
  return {.kind = "join_head_dims",
          .ins = {"a", optional("b")},
          .outs = {"y"},
          .infer = infer_heads,
          .grad = grad_of_joined_heads,
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"head_dim"},
          .additive = true};  // b is repeated over padded heads
}

OpRow join_head_dims_grad() {
  return {.kind = "join_head_dims_grad",
          .ins = {"y"},
          .outs = {"a", optional("b")},
          .family = "join_head_dims",
          .grad = grad_of_split,
          .flops = [](Types ins, Types, const Attributes&) { return elements(ins); },
          .whole = {"head_dim"},
          .additive = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops

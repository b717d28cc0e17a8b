// The same memory under another dim name, so that no value has two dims of one name (`seq` of the keys becomes
// `key_seq`).
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow rename() {
  return {.kind = "rename",
          .ins = {"x"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            std::vector<tensor::Dim> dims = ins[0].shape.dims();
            const int i = ins[0].shape.find(a.text("from"));
            if (i < 0)
              throw base::InternalError("rename", "{} has no dim \"{}\"", to_string(ins[0].shape), a.text("from"));
            dims[static_cast<size_t>(i)].name = a.text("to");
            return {{Shape(dims), ins[0].dtype}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.rename(dy[0], op.attributes.text("to"), op.attributes.text("from"))};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .additive = true,
          .keeps_zero = true,
          .view = true};
}

}  // namespace kintsugi::ops

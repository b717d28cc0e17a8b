#include "kintsugi/kernels/columns_along.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::reference {
namespace {

// The offset of the attribute's first name in the first operand.
size_t axis_of(const KernelCall& call) {
  return static_cast<size_t>(call.ins[0].shape().find(tensor::words(call.attributes.text("whole"))[0]));
}

}  // namespace

void concatenate(const KernelCall& call) {
  const size_t axis = axis_of(call);
  const int64_t first = call.ins[0].shape()[axis].size;
  copy_along(axis, call.ins[0], 0, call.outs[0], 0, first);
  copy_along(axis, call.ins[1], 0, call.outs[0], first, call.ins[1].shape()[axis].size);
}

void slice(const KernelCall& call) {
  const size_t axis = axis_of(call);
  copy_along(axis, call.ins[0], call.attributes.integer("first"), call.outs[0], 0, call.outs[0].shape()[axis].size);
}

}  // namespace kintsugi::kernels::reference

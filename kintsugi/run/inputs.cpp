// How a rank fills its part of the inputs.
#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::run {

using program::BufferId;
using tensor::View;

void Executor::bind_inputs(const program::CallList& list) {
  for (const program::Call& call : list.calls)
    for (const program::Instruction& i : program_.bodies[static_cast<size_t>(call.body)].instructions)
      for (BufferId id : i.ins) {
        const BufferId root = program_.root(id);
        const program::Buffer& b = program_.buffer(root);
        const bool known = std::any_of(inputs_.begin(), inputs_.end(),
                                       [&](const Input& in) { return in.step == list.step && in.buffer == root; });
        const tensor::Shape& shape = b.type.shape;
        if (b.input.empty() || known || shape.rank() < 1 || shape.rank() > 2 || shape[0].name != tensor::kSamples)
          continue;
        inputs_.push_back({list.step, b.input, root, program_.base(call.body),
                           program_.index(root, tensor::kSamples, rank_),
                           shape.rank() == 1 ? tensor::DimIndex(1) : program_.index(root, shape[1].name, rank_)});
      }
}

template <typename T>
void Executor::Inputs::set_rows(std::string_view name, const RowsOf<T>& rows, T padding) const {
  for (const Input& in : executor_.inputs_) {
    if (in.step != list_.step || in.name != name || executor_.program_.base(call_.body) != in.body) continue;
    auto* to = reinterpret_cast<T*>(executor_.input_address(in, list_, call_));
    for (const tensor::Segment& b : in.batch.segments())
      for (int64_t i = 0; i < b.count; ++i)
        for (const tensor::Segment& s : in.column.segments()) {
          if (b.global < 0 || s.global < 0) {
            std::fill_n(to, s.count, padding);
          } else {
            const int64_t at = (b.global + i - rows.first) * rows.size + s.global;
            base::require(at >= 0 && at + s.count <= static_cast<int64_t>(rows.values.size()), "run",
                          "row {} of input \"{}\" was not given", b.global + i, name);
            std::copy_n(rows.values.data() + at, s.count, to);
          }
          to += s.count;
        }
  }
}

template void Executor::Inputs::set_rows(std::string_view, const RowsOf<int32_t>&, int32_t) const;
template void Executor::Inputs::set_rows(std::string_view, const RowsOf<float>&, float) const;

View Executor::Inputs::view(std::string_view name) const {
  base::require(!executor_.on_device(), "run", "input \"{}\" of a device is seen", name);
  for (const program::Instruction& i : executor_.body_of(call_).instructions)
    for (BufferId b : i.ins)
      if (executor_.program_.buffer(b).input == name) return executor_.view(b, list_, call_.slot);
  throw base::InternalError("run", "a call of {} has no input \"{}\"", name_of(list_.step), name);
}

Executor::RowRange Executor::input_rows(program::Step step) const {
  RowRange r = {INT64_MAX, 0};
  for (const Input& in : inputs_) {
    if (in.step != step) continue;
    for (const tensor::Segment& s : in.batch.segments()) {
      if (s.global < 0) continue;
      r.first = std::min(r.first, s.global);
      r.last = std::max(r.last, s.global + s.count);
    }
  }
  return r.last == 0 ? RowRange{} : r;
}

}  // namespace kintsugi::run

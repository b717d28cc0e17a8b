// How a rank fills its part of the inputs.
#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/run/executor.h"

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
        if (!b.input.empty() && !known && b.type.shape.has("batch") && b.type.shape.has("seq"))
          inputs_.push_back({list.step, b.input, root, program_.base(call.body), program_.index(root, "batch", rank_),
                             program_.index(root, "seq", rank_)});
      }
}

void Executor::Inputs::set(std::string_view name, const Rows& rows, int32_t padding) const {
  for (const Input& in : executor_.inputs_) {
    if (in.step != list_.step || in.name != name || executor_.program_.base(call_.body) != in.body) continue;
    auto* to = reinterpret_cast<int32_t*>(executor_.address(in.buffer, list_, call_.slot));
    for (const tensor::Segment& b : in.batch.segments())
      for (int64_t i = 0; i < b.count; ++i)
        for (const tensor::Segment& s : in.seq.segments()) {
          if (b.global < 0 || s.global < 0) {
            std::fill_n(to, s.count, padding);
          } else {
            const int64_t at = (b.global + i - rows.first) * rows.sequence + s.global;
            base::require(at >= 0 && at + s.count <= static_cast<int64_t>(rows.values.size()), "run",
                          "row {} of input \"{}\" was not given", b.global + i, name);
            std::copy_n(rows.values.data() + at, s.count, to);
          }
          to += s.count;
        }
  }
}

View Executor::Inputs::view(std::string_view name) const {
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

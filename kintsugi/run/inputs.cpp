// Fills the rank's part of inputs.
#include <algorithm>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::run {

using program::BufferId;
using tensor::DimIndex;
using tensor::Segment;
using tensor::View;

namespace {

bool is_whole(const DimIndex& dim) {
  return dim.segments() == std::vector<Segment>{{0, dim.whole()}};
}

// Merges two dims, where the inner one is whole.
DimIndex joined(const DimIndex& outer, int64_t inner) {
  std::vector<Segment> segments = outer.segments();
  for (Segment& s : segments) {
    if (s.global >= 0) s.global *= inner;
    s.count *= inner;
  }
  return {std::move(segments), outer.whole() * inner};
}

// Writes the block of a rank, row-major, from a row of the whole.
class BlockWriter {
 public:
  BlockWriter(std::span<const DimIndex> dims, std::span<const std::byte> padding, std::byte* to)
      : dims_(dims), padding_(padding), to_(to) {}

  // `row`: null for a row that is padding.
  void write(const std::byte* row) { write(0, 0, row); }

 private:
  void write(size_t dim, int64_t before, const std::byte* row) {
    const auto bytes = static_cast<int64_t>(padding_.size());
    if (dim == dims_.size()) return copy(row ? row + before * bytes : nullptr, 1);
    const bool last = dim + 1 == dims_.size();
    for (const Segment& s : dims_[dim].segments()) {
      const std::byte* const from = s.global < 0 ? nullptr : row;
      const int64_t at = before * dims_[dim].whole() + std::max<int64_t>(0, s.global);
      if (last) {
        copy(from ? from + at * bytes : nullptr, s.count);
        continue;
      }
      for (int64_t i = 0; i < s.count; ++i) write(dim + 1, from ? at + i : 0, from);
    }
  }

  void copy(const std::byte* from, int64_t count) {
    const size_t size = padding_.size(), bytes = static_cast<size_t>(count) * size;
    if (from) {
      std::memcpy(to_, from, bytes);
    } else {
      for (size_t at = 0; at < bytes; at += size) std::memcpy(to_ + at, padding_.data(), size);
    }
    to_ += bytes;
  }

  std::span<const DimIndex> dims_;
  std::span<const std::byte> padding_;
  std::byte* to_;
};

}  // namespace

void Executor::bind_inputs(const program::CallList& list) {
  for (const program::Call& call : list.calls)
    for (const program::Instruction& i : program_.bodies[static_cast<size_t>(call.body)].instructions)
      for (BufferId id : i.ins) {
        const BufferId root = program_.root(id);
        const program::Buffer& b = program_.buffer(root);
        const bool known = std::any_of(inputs_.begin(), inputs_.end(),
                                       [&](const Input& in) { return in.step == list.step && in.buffer == root; });
        if (b.input.empty() || known) continue;
        const tensor::Shape& shape = b.type.shape;
        const int samples = shape.find(tensor::kSamples);
        base::require(samples <= 0, "run", "the samples of input \"{}\" are not its first dim", b.input);
        Input in = {.step = list.step,
                    .name = b.input,
                    .buffer = root,
                    .body = program_.base(call.body),
                    .by_rows = samples == 0,
                    .batch = samples == 0 ? program_.index(root, tensor::kSamples, rank_) : DimIndex(1),
                    .dims = {},
                    .size = 1};
        for (size_t d = in.by_rows ? 1 : 0; d < shape.rank(); ++d) {
          const DimIndex dim = program_.index(root, shape[d].name, rank_);
          in.size *= dim.whole();
          if (!in.dims.empty() && is_whole(dim))
            in.dims.back() = joined(in.dims.back(), dim.whole());
          else
            in.dims.push_back(dim);
        }
        inputs_.push_back(std::move(in));
      }
}

void Executor::fill_inputs(const program::CallList& list, const program::Call& call, Fill fill,
                           const void* context) const {
  const auto asked = [&](const Input& in) { return in.step == list.step && in.body == program_.base(call.body); };
  for (const Input& in : inputs_)
    if (asked(in)) in.set = false;
  fill(context, Inputs(*this, list, call));
  for (const Input& in : inputs_)
    base::require(in.set || !asked(in), "run", "input \"{}\" of the list of calls \"{}\" was not set", in.name,
                  name_of(list.step));
}

bool Executor::Inputs::has(std::string_view name) const {
  return std::ranges::any_of(executor_.inputs_,
                             [&](const Input& in) { return in.step == list_.step && in.name == name; });
}

void Executor::Inputs::set(std::string_view name, const TypedRows& rows) const {
  base::require(has(name), "run", "the list of calls \"{}\" has no input \"{}\"", name_of(list_.step), name);
  for (const Input& in : executor_.inputs_) {
    if (in.step != list_.step || in.name != name || executor_.program_.base(call_.body) != in.body) continue;
    const tensor::DType dtype = executor_.program_.buffer(in.buffer).type.dtype;
    base::require(rows.dtype == dtype && rows.size == in.size, "run",
                  "input \"{}\" has {} elements of {} in a row, and is set to {} of {}", name, in.size, name_of(dtype),
                  rows.size, name_of(rows.dtype));
    in.set = true;
    const int64_t bytes = in.size * static_cast<int64_t>(rows.padding.size());
    BlockWriter writer(in.dims, rows.padding, executor_.runner_->input_address(list_, call_, in.buffer));
    for (const Segment& b : in.batch.segments())
      for (int64_t i = 0; i < b.count; ++i) {
        const int64_t at = (b.global + i - rows.first) * bytes;
        base::require(b.global < 0 || (at >= 0 && at + bytes <= std::ssize(rows.values)), "run",
                      "row {} of input \"{}\" was not given", b.global + i, name);
        writer.write(b.global < 0 ? nullptr : rows.values.data() + at);
      }
  }
}

View Executor::Inputs::view(std::string_view name) const {
  base::require(!executor_.on_device(), "run", "input \"{}\" is in memory of a device", name);
  for (const program::Instruction& i : executor_.body_of(call_).instructions)
    for (BufferId b : i.ins)
      if (executor_.program_.buffer(b).input == name) {
        for (const Input& in : executor_.inputs_)
          if (in.step == list_.step && in.name == name) in.set = true;
        return executor_.view(b, list_, call_.slot);
      }
  throw base::InternalError("run", "a call of {} has no input \"{}\"", name_of(list_.step), name);
}

Executor::RowRange Executor::input_rows(program::Step step) const {
  RowRange r = {INT64_MAX, 0};
  for (const Input& in : inputs_) {
    if (in.step != step || !in.by_rows) continue;
    for (const Segment& s : in.batch.segments()) {
      if (s.global < 0) continue;
      r.first = std::min(r.first, s.global);
      r.last = std::max(r.last, s.global + s.count);
    }
  }
  return r.last == 0 ? RowRange{} : r;
}

}  // namespace kintsugi::run

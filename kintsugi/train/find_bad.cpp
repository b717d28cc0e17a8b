#include "kintsugi/train/find_bad.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kintsugi/run/state_blocks.h"

namespace kintsugi::train {
namespace {

bool finite(const tensor::View& view) {
  if (!tensor::is_floating(view.dtype())) return true;
  return tensor::dispatch(view.dtype(), [&]<typename T>(T) {
    for (const T& x : view.as<T>())
      if (!std::isfinite(static_cast<tensor::arithmetic_t<T>>(x))) return false;
    return true;
  });
}

// Whether the elements of a state that this rank holds are finite.
bool finite(const run::Executor& executor, const program::StateInfo& s) {
  bool all = true;
  const tensor::DType dtype = executor.program().buffer(s.buffer).type.dtype;
  if (!tensor::is_floating(dtype)) return true;  // codes, whose scales are states too
  tensor::dispatch(dtype, [&]<typename T>(T) {
    run::look_at_runs(executor, s, [&](const program::Run& run, const std::byte* data) {
      const T* x = reinterpret_cast<const T*>(data);
      for (int64_t i = 0; all && i < run.count; ++i) all = std::isfinite(static_cast<tensor::arithmetic_t<T>>(x[i]));
    });
  });
  return all;
}

constexpr int64_t kChunks = 1 << 16;

// The position of a body of micro-batch m in the order of a single rank without stages: each micro-batch completely,
// forward through the chunks and back.
int64_t order_of(const program::Body& body, int64_t m) {
  using program::Work;
  if (body.does(Work::update)) return INT64_MAX >> 24;
  const int64_t pass = body.does(Work::weight) ? 2 : body.does(Work::backward) ? 1 : 0;
  return (3 * m + pass) * kChunks + (pass == 0 ? body.chunk : kChunks - 1 - body.chunk);
}

}  // namespace

std::string find_bad(run::Executor& executor, comm::Communicator& all, kernels::Numbers numbers,
                     const std::function<std::string(const run::Executor::Inputs&)>& fill) {
  const program::Program& p = executor.program();
  constexpr int64_t kNever = INT64_MAX;
  int64_t when = kNever, now = 0, micro_batch = 0;
  const program::Body* here = nullptr;
  std::string found;
  for (const program::StateInfo& s : p.states)
    if (when == kNever && (s.kind == program::StateKind::weight || s.kind == program::StateKind::optimizer) &&
        !finite(executor, s)) {
      when = 0;
      found = fmt::format("{} {}, before the step", name_of(s.kind), s.name);
    }
  // Every rank runs to the end, since others wait for its part.
  executor.watch = [&](const run::Executor::Watched& watched) {
    const program::Body& body = watched.body;
    const program::Instruction& i = watched.instruction;
    if (numbers.batch_rows > 0) micro_batch = numbers.batch_offset / numbers.batch_rows;
    const int64_t begin = order_of(body, micro_batch) << 20;
    now = here == &body && now > begin ? now + 1 : begin + 1;
    here = &body;
    if (now >= when) return;
    for (program::BufferId b : i.outs) {
      if (executor.in_file(b)) continue;
      tensor::View made = executor.view(b, watched.list, watched.call.slot);
      std::vector<std::byte> copy;
      if (executor.on_device()) {
        copy.resize(static_cast<size_t>(made.type.bytes()));
        executor.copy_to_host(made.data, copy);
        made.data = copy.data();
      }
      if (finite(made)) continue;
      when = now;
      found = fmt::format("layer {}, {}: {} makes {} of micro-batch {}", i.layer, name_of(i.phase), name_of(i),
                          p.buffer(b).name, micro_batch);
      return;
    }
  };
  executor.run(program::Step::train, numbers, [&](const run::Executor::Inputs& inputs) {
    micro_batch = inputs.micro_batch();
    const std::string bad = fill(inputs);
    if (const int64_t begin = (3 * micro_batch * kChunks) << 20; !bad.empty() && begin < when) {
      when = begin;
      found = fmt::format("{} of micro-batch {}", bad, micro_batch);
    }
  });
  executor.watch = nullptr;
  std::vector<int64_t> times(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&when, 1)), std::as_writable_bytes(std::span(times))));
  const auto first = std::min_element(times.begin(), times.end());
  if (*first == kNever) return "";
  std::array<char, 512> text = {};
  if (all.rank() == first - times.begin()) found.copy(text.data(), text.size() - 1);
  all.wait(all.broadcast(std::as_writable_bytes(std::span(text)), static_cast<int>(first - times.begin())));
  return text.data();
}

}  // namespace kintsugi::train

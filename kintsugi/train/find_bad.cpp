#include "kintsugi/train/find_bad.h"

#include <fmt/format.h>

#include <cmath>

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

struct Found {};

}  // namespace

std::string find_bad(run::Executor& executor, kernels::Numbers numbers, const std::function<void(int64_t)>& fill) {
  const program::Program& p = executor.program();
  for (const program::StateInfo& s : p.states)
    if ((s.kind == "weight" || s.kind == "optimizer") && !finite(executor.view(s.buffer)))
      return fmt::format("{} {}, before the step", s.kind, s.name);
  std::string found;
  int64_t micro_batch = 0;
  executor.watch = [&](const program::Body&, const program::Instruction& i) {
    for (program::BufferId b : i.outs) {
      if (finite(executor.view(b))) continue;
      found = fmt::format("layer {}, {}: {} makes {} of micro-batch {}", i.layer, i.phase, i.kernel, p.buffer(b).name,
                          micro_batch);
      throw Found();
    }
  };
  try {
    executor.run("train", numbers, [&](int64_t m) {
      micro_batch = m;
      fill(m);
    });
  } catch (const Found&) {
  }
  executor.watch = nullptr;
  return found;
}

}  // namespace kintsugi::train

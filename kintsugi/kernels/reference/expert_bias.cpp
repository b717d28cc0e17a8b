#include <utility>

#include "kintsugi/kernels/reference/experts.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// Calls f(element of x, element of the bias) for the elements of filled slots. x: [batch expert slot wide]
template <typename F>
void for_filled(const KernelCall& call, const Shape& x, const View& counts_view, const F& f) {
  const std::vector<int64_t> counts = load_integers(counts_view), slots = global_of_local(call.index("slot"));
  const int64_t wide = width(x), experts = x[1].size, capacity = x[2].size;
  for (int64_t row = 0; row < rows(x); ++row) {
    const int64_t slot = slots[static_cast<size_t>(row % capacity)], expert = row / capacity % experts;
    if (slot < 0 || slot >= counts[static_cast<size_t>(row / capacity)]) continue;
    for (int64_t i = 0; i < wide; ++i) f(static_cast<size_t>(row * wide + i), static_cast<size_t>(expert * wide + i));
  }
}

}  // namespace

void clear_unused_slots(const KernelCall& call, const Shape& x, const View& counts, std::vector<double>& values) {
  if (!counts.data) return;
  std::vector<double> used(values.size(), 0.0);
  for_filled(call, x, counts, [&](size_t at, size_t) { used[at] = values[at]; });
  values = std::move(used);
}

void expert_bias(const KernelCall& call) {
  const View& x_view = call.ins[ExpertBiasIn::kX];
  std::vector<double> y = load(x_view);
  const std::vector<double> bias = load(call.ins[ExpertBiasIn::kBias]);
  for_filled(call, x_view.shape(), call.ins[ExpertBiasIn::kCounts], [&](size_t at, size_t of) { y[at] += bias[of]; });
  clear_unused_slots(call, x_view.shape(), call.ins[ExpertBiasIn::kCounts], y);
  store(call, 0, y);
}

void expert_bias_grad(const KernelCall& call) {
  const std::vector<double> dy = load(call.ins[0]);
  std::vector<double> dbias(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_filled(call, call.ins[0].shape(), call.ins[1], [&](size_t at, size_t of) { dbias[of] += dy[at]; });
  store(call, 0, dbias);
}

}  // namespace kintsugi::kernels::reference

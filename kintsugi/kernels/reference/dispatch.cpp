#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/experts.h"
#include "kintsugi/kernels/reference/values.h"
#include "kintsugi/kernels/refuse_token.h"

namespace kintsugi::kernels::reference {
namespace {

// Calls f(position in [batch seq choice], row of x, row of y) for every slot in the local block of y.
template <typename F>
void for_slots(const KernelCall& call, const Shape& y, const View& slots_view, const F& f) {
  const std::vector<int64_t> slots = load_integers(slots_view);
  const Shape& shape = slots_view.shape();
  const int64_t seq = shape[1].size, choices = shape[2].size, capacity = call.attributes.integer("capacity");
  const std::vector<int64_t> expert_of = local_of_global(call.index("expert")),
                             slot_of = local_of_global(call.index("slot"));
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const int64_t slot = slots[static_cast<size_t>(i)], row = i / choices;
    if (slot < 0) continue;
    const int64_t expert = at_or_absent(expert_of, slot / capacity), place = at_or_absent(slot_of, slot % capacity);
    if (expert < 0 || place < 0) continue;
    f(static_cast<size_t>(i), row, ((row / seq) * y[1].size + expert) * y[2].size + place);
  }
}

}  // namespace

void assign_slots(const KernelCall& call) {
  const std::vector<int64_t> experts = load_integers(call.ins[0]);
  const Shape& shape = call.ins[0].shape();
  const int64_t tokens = shape[1].size * shape[2].size, capacity = call.attributes.integer("capacity"),
                count_experts = call.attributes.integer("experts");
  const DimIndex& batch = call.index("batch");
  const std::span<int32_t> slots = call.outs[AssignSlotsOut::kSlots].as<int32_t>(),
                           counts = call.outs[AssignSlotsOut::kCounts].as<int32_t>();
  std::fill(counts.begin(), counts.end(), 0);
  for (int64_t b = 0; b < shape[0].size; ++b)
    for (int64_t i = 0; i < tokens; ++i) {
      const auto at = static_cast<size_t>(b * tokens + i);
      slots[at] = 0;
      if (batch[b] < 0) continue;
      int32_t& count = counts[static_cast<size_t>(b * count_experts + experts[at])];
      if (count == capacity) refuse_token(call, b, experts[at]);
      slots[at] = count < capacity ? static_cast<int32_t>(experts[at] * capacity + count) : -1;
      if (count < capacity) ++count;
    }
}

void dispatch(const KernelCall& call) {
  const View& weights_view = call.ins[DispatchIn::kWeights];
  const std::vector<double> x = load(call.ins[DispatchIn::kX]);
  const std::vector<double> weights = weights_view.data ? load(weights_view) : std::vector<double>();
  const auto embed = static_cast<size_t>(width(call.outs[0].shape()));
  std::vector<double> y(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_slots(call, call.outs[0].shape(), call.ins[DispatchIn::kSlots], [&](size_t i, int64_t from, int64_t to) {
    const double weight = weights.empty() ? 1.0 : weights[i];
    for (size_t e = 0; e < embed; ++e)
      y[static_cast<size_t>(to) * embed + e] += weight * x[static_cast<size_t>(from) * embed + e];
  });
  store(call, 0, y);
}

void combine(const KernelCall& call) {
  const View &y_view = call.ins[CombineIn::kY], &weights_view = call.ins[CombineIn::kWeights];
  const std::vector<double> y = load(y_view);
  const std::vector<double> weights = weights_view.data ? load(weights_view) : std::vector<double>();
  const auto embed = static_cast<size_t>(width(y_view.shape()));
  std::vector<double> x(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_slots(call, y_view.shape(), call.ins[CombineIn::kSlots], [&](size_t i, int64_t to, int64_t from) {
    const double weight = weights.empty() ? 1.0 : weights[i];
    for (size_t e = 0; e < embed; ++e)
      x[static_cast<size_t>(to) * embed + e] += weight * y[static_cast<size_t>(from) * embed + e];
  });
  store(call, 0, x);
}

void weigh(const KernelCall& call) {
  const View& y_view = call.ins[WeighIn::kY];
  const std::vector<double> y = load(y_view), x = load(call.ins[WeighIn::kX]);
  const auto embed = static_cast<size_t>(width(y_view.shape()));
  std::vector<double> dweights(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_slots(call, y_view.shape(), call.ins[WeighIn::kSlots], [&](size_t i, int64_t of_x, int64_t of_y) {
    for (size_t e = 0; e < embed; ++e)
      dweights[i] += x[static_cast<size_t>(of_x) * embed + e] * y[static_cast<size_t>(of_y) * embed + e];
  });
  store(call, 0, dweights);
}

}  // namespace kintsugi::kernels::reference

#include "kintsugi/kernels/reference/experts.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

// y: the kept dims; `summed`: those of a and b that y lacks. A point of both has an index in [batch expert slot], and
// counts only if the slot is filled.
void grouped(const KernelCall& call) {
  const View &a_view = call.ins[GroupedIn::kA], &b_view = call.ins[GroupedIn::kB],
             &counts_view = call.ins[GroupedIn::kCounts];
  const Shape& kept = call.outs[0].shape();
  std::vector<tensor::Dim> lacking;
  for (const View* x : {&a_view, &b_view})
    for (const tensor::Dim& dim : x->shape())
      if (!kept.has(dim.name) && (x == &a_view || !a_view.shape().has(dim.name))) lacking.push_back(dim);
  const Shape summed(lacking);
  const tensor::Dim slot = a_view.shape().has("slot") ? a_view.shape()[static_cast<size_t>(a_view.shape().find("slot"))]
                                                      : tensor::Dim{"slot", b_view.shape().size("slot")};
  const std::vector<int64_t> place_of = global_of_local(call.index("slot"));

  const bool has_scale = call.ins.size() > GroupedIn::kScale;
  const std::vector<double> a = load(a_view), b = load_scaled(b_view, has_scale ? call.ins[GroupedIn::kScale] : View());
  const std::vector<int64_t> counts = load_integers(counts_view);
  const auto both = [&](const Shape& of) {
    const std::vector<int64_t> first = offsets(kept, of), then = offsets(summed, of);
    return std::pair(first, then);
  };
  const auto [a_begin, a_step] = both(a_view.shape());
  const auto [b_begin, b_step] = both(b_view.shape());
  const auto [count_begin, count_step] = both(counts_view.shape());
  const auto [slot_begin, slot_step] = both(Shape{slot});
  std::vector<double> y(a_begin.size(), 0.0);
  for (size_t i = 0; i < y.size(); ++i)
    for (size_t j = 0; j < a_step.size(); ++j) {
      const int64_t place = place_of[static_cast<size_t>(slot_begin[i] + slot_step[j])];
      if (place < 0 || place >= counts[static_cast<size_t>(count_begin[i] + count_step[j])]) continue;
      y[i] += a[static_cast<size_t>(a_begin[i] + a_step[j])] * b[static_cast<size_t>(b_begin[i] + b_step[j])];
    }
  if (const View& added = call.ins[GroupedIn::kAdded]; added.data) {
    const std::vector<double> terms = load(added);
    for (size_t i = 0; i < y.size(); ++i) y[i] += terms[i];
    if (kept.has("slot")) clear_unused_slots(call, kept, counts_view, y);
  }
  store(call, GroupedOut::kY, y);
}

}  // namespace kintsugi::kernels::reference

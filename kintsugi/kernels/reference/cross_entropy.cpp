#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

namespace {

// Whether each position counts: labelled, and not padding. labels: [batch seq]
std::vector<bool> counted_positions(const KernelCall& call, const View& labels) {
  const std::vector<int64_t> label = load_integers(labels), whole = positions_in_whole(call, labels.shape());
  std::vector<bool> counted;
  for (size_t i = 0; i < label.size(); ++i) counted.push_back(label[i] >= 0 && whole[i] >= 0);
  return counted;
}

}  // namespace

void cross_entropy(const KernelCall& call) {
  using In = CrossEntropyIn;
  const std::vector<double> lse = load(call.ins[In::kLse]), target = load(call.ins[In::kTarget]);
  const std::vector<bool> counted = counted_positions(call, call.ins[In::kLabels]);
  double loss = 0, count = 0;
  for (size_t i = 0; i < counted.size(); ++i) {
    if (!counted[i]) continue;
    loss += lse[i] - target[i];
    count += 1;
  }
  store(call, 0, {&loss, 1});
  store(call, 1, {&count, 1});
}

void cross_entropy_grad(const KernelCall& call) {
  const std::vector<bool> counted = counted_positions(call, call.ins[0]);
  const double dloss = load_scalar(call.ins[1]);
  std::vector<double> dlse, dtarget;
  for (bool counts : counted) {
    dlse.push_back(counts ? dloss : 0.0);
    dtarget.push_back(counts ? -dloss : 0.0);
  }
  store(call, 0, dlse);
  store(call, 1, dtarget);
}

}  // namespace kintsugi::kernels::reference

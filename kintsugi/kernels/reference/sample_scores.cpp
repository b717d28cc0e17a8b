#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

// lse, target, labels, top: [batch seq]
void sample_scores(const KernelCall& call) {
  using In = SampleScoresIn;
  using Out = SampleScoresOut;
  const View& labels = call.ins[In::kLabels];
  const std::vector<double> lse = load(call.ins[In::kLse]), target = load(call.ins[In::kTarget]),
                            top = load(call.ins[In::kTop]);
  const std::vector<int64_t> label = load_integers(labels), whole = positions_in_whole(call, labels.shape());
  const auto samples = static_cast<size_t>(labels.size("batch")), columns = static_cast<size_t>(labels.size("seq"));
  std::vector<double> likelihood(samples), count(samples), misses(samples);
  for (size_t i = 0; i < label.size(); ++i) {
    if (label[i] < 0 || whole[i] < 0) continue;
    const size_t sample = i / columns;
    likelihood[sample] += target[i] - lse[i];
    count[sample] += 1;
    misses[sample] += target[i] >= top[i] ? 0 : 1;
  }
  store(call, Out::kLogLikelihood, likelihood);
  store(call, Out::kCount, count);
  store(call, Out::kMisses, misses);
}

}  // namespace kintsugi::kernels::reference

// Scores of whole samples. There are few positions compared with the logits, so a single thread sums them.
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/operands.h"

namespace kintsugi::kernels::cpu {

// lse, target, labels, top: [batch seq]
void sample_scores(const KernelCall& call) {
  using In = SampleScoresIn;
  using Out = SampleScoresOut;
  const auto floats = [&](size_t i) { return reinterpret_cast<const float*>(call.ins[i].data); };
  const float *lse = floats(In::kLse), *target = floats(In::kTarget), *top = floats(In::kTop);
  const tensor::View& labels = call.ins[In::kLabels];
  const int32_t* label = reinterpret_cast<const int32_t*>(labels.data);
  const tensor::DimIndex &batch = call.index("batch"), &seq = call.index("seq");
  const int64_t columns = labels.size("seq");
  for (int64_t b = 0; b < labels.size("batch"); ++b) {
    double likelihood = 0, count = 0, misses = 0;
    for (int64_t s = 0; s < columns && batch[b] >= 0; ++s) {
      const int64_t i = b * columns + s;
      if (label[i] < 0 || seq[s] < 0) continue;
      likelihood += static_cast<double>(target[i]) - static_cast<double>(lse[i]);
      count += 1;
      misses += target[i] >= top[i] ? 0 : 1;
    }
    const auto at = static_cast<size_t>(b);
    call.outs[Out::kLogLikelihood].as<double>()[at] = likelihood;
    call.outs[Out::kCount].as<double>()[at] = count;
    call.outs[Out::kMisses].as<double>()[at] = misses;
  }
}

bool sample_scores_takes(const Operands& o) {
  return o.ins[0].dtype == tensor::DType::f32 && o.outs[0].dtype == tensor::DType::f64;
}

}  // namespace kintsugi::kernels::cpu

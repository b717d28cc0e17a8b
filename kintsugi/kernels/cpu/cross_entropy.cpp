#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {
namespace {

// Calls f(position) for counted positions: labelled, and not padding. labels: [batch seq]
template <typename F>
void for_positions(const KernelCall& call, const tensor::View& labels, const F& f) {
  const int32_t* label = reinterpret_cast<const int32_t*>(labels.data);
  const tensor::DimIndex &batch = call.index("batch"), &seq = call.index("seq");
  const int64_t columns = labels.size("seq");
  for (int64_t b = 0; b < labels.size("batch"); ++b)
    for (int64_t s = 0; s < columns; ++s) {
      const int64_t i = b * columns + s;
      f(i, label[i] >= 0 && batch[b] >= 0 && seq[s] >= 0);
    }
}

}  // namespace

void cross_entropy(const KernelCall& call) {
  using In = CrossEntropyIn;
  const float* lse = reinterpret_cast<const float*>(call.ins[In::kLse].data);
  const float* target = reinterpret_cast<const float*>(call.ins[In::kTarget].data);
  double loss = 0, count = 0;
  for_positions(call, call.ins[In::kLabels], [&](int64_t i, bool counts) {
    if (counts) loss += static_cast<double>(lse[i]) - static_cast<double>(target[i]), count += 1;
  });
  double& loss_out = call.outs[0].as<double>()[0];
  double& count_out = call.outs[1].as<double>()[0];
  loss_out = call.accumulates(0) ? loss_out + loss : loss;
  count_out = call.accumulates(1) ? count_out + count : count;
}

void cross_entropy_grad(const KernelCall& call) {
  const float dloss = static_cast<float>(call.ins[1].as<double>()[0]);
  float* dlse = reinterpret_cast<float*>(call.outs[0].data);
  float* dtarget = reinterpret_cast<float*>(call.outs[1].data);
  for_positions(call, call.ins[0], [&](int64_t i, bool counts) {
    dlse[i] = counts ? dloss : 0.0f;
    dtarget[i] = counts ? -dloss : 0.0f;
  });
}

bool cross_entropy_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype) && o.outs[0].dtype == tensor::DType::f64;
}
bool cross_entropy_grad_takes(const Operands& o) {
  return o.outs[0].dtype == tensor::DType::f32 && o.ins[1].dtype == tensor::DType::f64;
}

}  // namespace kintsugi::kernels::cpu

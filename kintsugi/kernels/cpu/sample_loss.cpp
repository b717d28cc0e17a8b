// Losses of whole samples. They are few, so that one thread adds them up, in double precision.
#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {
namespace {

void store_sums(const KernelCall& call, double loss, double count) {
  const double sums[] = {loss, count};
  for (size_t i = 0; i < 2; ++i) {
    double& out = call.outs[i].as<double>()[0];
    out = call.accumulates(i) ? out + sums[i] : sums[i];
  }
}

// Calls f(element, its value in double precision) for each of the view, as its type.
template <typename F>
void with_values(const tensor::View& view, const F& f) {
  tensor::dispatch(view.dtype(), [&]<typename T>(T) {
    T* data = reinterpret_cast<T*>(view.data);
    f(data, [data](int64_t i) { return static_cast<double>(static_cast<tensor::arithmetic_t<T>>(data[i])); });
  });
}

template <typename At>
double log_sum_exp(const At& x, int64_t begin, int64_t count) {
  double most = x(begin), sum = 0;
  for (int64_t c = 1; c < count; ++c) most = std::max(most, x(begin + c));
  for (int64_t c = 0; c < count; ++c) sum += std::exp(x(begin + c) - most);
  return most + std::log(sum);
}

}  // namespace

// logits: [batch class], labels, weights: [batch]
void class_loss(const KernelCall& call) {
  using In = ClassLossIn;
  const int32_t* labels = reinterpret_cast<const int32_t*>(call.ins[In::kLabels].data);
  const float* weights = reinterpret_cast<const float*>(call.ins[In::kWeights].data);
  const tensor::DimIndex& batch = call.index("batch");
  const int64_t classes = call.ins[In::kLogits].size("class");
  double loss = 0, count = 0;
  with_values(call.ins[In::kLogits], [&](auto*, const auto& logit) {
    for (int64_t b = 0; b < call.ins[In::kLabels].elements(); ++b) {
      if (labels[b] < 0 || labels[b] >= classes || batch[b] < 0) continue;
      const double weight = weights[b];
      loss += weight * (log_sum_exp(logit, b * classes, classes) - logit(b * classes + labels[b]));
      count += weight;
    }
  });
  store_sums(call, loss, count);
}

void class_loss_grad(const KernelCall& call) {
  using In = ClassLossIn;
  const int32_t* labels = reinterpret_cast<const int32_t*>(call.ins[In::kLabels].data);
  const float* weights = reinterpret_cast<const float*>(call.ins[In::kWeights].data);
  const double dloss = call.ins[In::kDloss].as<double>()[0];
  const tensor::DimIndex& batch = call.index("batch");
  const int64_t classes = call.outs[0].size("class");
  with_values(call.ins[In::kLogits], [&](auto* typed, const auto& logit) {
    auto* to = reinterpret_cast<decltype(typed)>(call.outs[0].data);
    using T = std::remove_pointer_t<decltype(typed)>;
    for (int64_t b = 0; b < call.ins[In::kLabels].elements(); ++b) {
      const bool counts = labels[b] >= 0 && labels[b] < classes && batch[b] >= 0;
      const double lse = counts ? log_sum_exp(logit, b * classes, classes) : 0.0;
      for (int64_t c = 0; c < classes; ++c) {
        const int64_t i = b * classes + c;
        const double slope = std::exp(logit(i) - lse) - (c == labels[b] ? 1.0 : 0.0);
        to[i] = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(counts ? dloss * weights[b] * slope : 0.0));
      }
    }
  });
}

namespace {

// Calls f(element, y - target, whether it counts: not at padding, and there is a target, no NaN).
template <typename F>
void for_differences(const KernelCall& call, const F& f) {
  const tensor::View& y = call.ins[0];
  const float* targets = reinterpret_cast<const float*>(call.ins[1].data);
  const tensor::DimIndex &batch = call.index("batch"), &target = call.index("target");
  const int64_t columns = y.size("target");
  with_values(y, [&](auto*, const auto& value) {
    for (int64_t i = 0; i < y.elements(); ++i)
      f(i, value(i) - static_cast<double>(targets[i]),
        batch[i / columns] >= 0 && target[i % columns] >= 0 && !std::isnan(targets[i]));
  });
}

}  // namespace

// y, targets: [batch target]
void squared_error(const KernelCall& call) {
  double loss = 0, count = 0;
  for_differences(call, [&](int64_t, double difference, bool counts) {
    if (counts) loss += difference * difference, count += 1;
  });
  store_sums(call, loss, count);
}

void squared_error_grad(const KernelCall& call) {
  const double dloss = call.ins[2].as<double>()[0];
  with_values(call.outs[0], [&](auto* to, const auto&) {
    using T = std::remove_pointer_t<decltype(to)>;
    for_differences(call, [&](int64_t i, double difference, bool counts) {
      to[i] = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(counts ? 2.0 * dloss * difference : 0.0));
    });
  });
}

bool sample_loss_takes(const Operands& o) {
  return tensor::is_floating(o.ins[0].dtype);
}

}  // namespace kintsugi::kernels::cpu

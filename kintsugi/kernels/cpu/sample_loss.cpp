// Losses of whole samples. There are few of them, so a single thread sums them, in double precision.
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

// Calls f(element, its value in double precision) for each element of the view, by its type.
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

namespace {

// The labels of samples, or of their pixels: which are counted, and with what weight.
class Labelled {
 public:
  // logits: [batch spatial... class], labels: [batch spatial...], weights: [batch]
  explicit Labelled(const KernelCall& call)
      : call_(call),
        shape_(call.ins[ClassLossIn::kLabels].shape()),
        labels_(reinterpret_cast<const int32_t*>(call.ins[ClassLossIn::kLabels].data)),
        weights_(reinterpret_cast<const float*>(call.ins[ClassLossIn::kWeights].data)),
        pixels_(shape_[0].size == 0 ? 1 : shape_.elements() / shape_[0].size) {}

  int64_t size() const { return shape_.elements(); }
  int32_t label(int64_t i) const { return labels_[i]; }
  double weight(int64_t i) const { return weights_[i / pixels_]; }
  bool counts(int64_t i, int64_t classes) const {
    if (labels_[i] < 0 || labels_[i] >= classes) return false;
    for (size_t d = shape_.rank(); d-- > 0;) {
      if (call_.index(shape_[d].name)[i % shape_[d].size] < 0) return false;
      i /= shape_[d].size;
    }
    return true;
  }

 private:
  const KernelCall& call_;
  const tensor::Shape& shape_;
  const int32_t* labels_;
  const float* weights_;
  int64_t pixels_;
};

}  // namespace

void class_loss(const KernelCall& call) {
  const Labelled labelled(call);
  const int64_t classes = call.ins[ClassLossIn::kLogits].size("class");
  const double smoothing = call.attributes.number_or("smoothing", 0.0);
  double loss = 0, count = 0;
  with_values(call.ins[ClassLossIn::kLogits], [&](auto*, const auto& logit) {
    for (int64_t i = 0; i < labelled.size(); ++i) {
      if (!labelled.counts(i, classes)) continue;
      double target = (1 - smoothing) * logit(i * classes + labelled.label(i));
      for (int64_t c = 0; smoothing > 0.0 && c < classes; ++c)
        target += smoothing / static_cast<double>(classes) * logit(i * classes + c);
      loss += labelled.weight(i) * (log_sum_exp(logit, i * classes, classes) - target);
      count += labelled.weight(i);
    }
  });
  store_sums(call, loss, count);
}

void class_loss_grad(const KernelCall& call) {
  const Labelled labelled(call);
  const double dloss = call.ins[ClassLossIn::kDloss].as<double>()[0],
               smoothing = call.attributes.number_or("smoothing", 0.0);
  const int64_t classes = call.outs[0].size("class");
  const double shared = smoothing / static_cast<double>(classes);
  with_values(call.ins[ClassLossIn::kLogits], [&](auto* typed, const auto& logit) {
    auto* to = reinterpret_cast<decltype(typed)>(call.outs[0].data);
    using T = std::remove_pointer_t<decltype(typed)>;
    for (int64_t i = 0; i < labelled.size(); ++i) {
      const bool counts = labelled.counts(i, classes);
      const double lse = counts ? log_sum_exp(logit, i * classes, classes) : 0.0,
                   factor = counts ? dloss * labelled.weight(i) : 0.0;
      for (int64_t c = 0; c < classes; ++c) {
        const int64_t at = i * classes + c;
        const double slope = std::exp(logit(at) - lse) - (c == labelled.label(i) ? 1.0 - smoothing : 0.0) - shared;
        to[at] = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(counts ? factor * slope : 0.0));
      }
    }
  });
}

namespace {

// Calls f(element, y - target, whether it counts: not at padding, and the target is not NaN).
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

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

// Calls f(element, y - target, target) for each counted element: not at padding, and the target is not NaN.
template <typename F>
void for_differences(const KernelCall& call, const F& f) {
  const tensor::View& y = call.ins[0];
  const float* targets = reinterpret_cast<const float*>(call.ins[1].data);
  const tensor::Shape& shape = y.shape();
  const bool padded = std::ranges::any_of(shape.dims(), [&](const tensor::Dim& d) {
    return std::ranges::any_of(call.index(d.name).segments(), [](const auto& s) { return s.global < 0; });
  });
  const auto real = [&](int64_t i) {
    for (size_t d = shape.rank(); d-- > 0;) {
      if (call.index(shape[d].name)[i % shape[d].size] < 0) return false;
      i /= shape[d].size;
    }
    return true;
  };
  with_values(y, [&](auto*, const auto& value) {
    for (int64_t i = 0; i < y.elements(); ++i) {
      const auto target = static_cast<double>(targets[i]);
      if (!std::isnan(target) && (!padded || real(i))) f(i, value(i) - target, target);
    }
  });
}

// dy = factor(element) * (y - target) where counted, else 0.
template <typename F>
void store_differences(const KernelCall& call, const F& factor) {
  with_values(call.outs[0], [&](auto* to, const auto&) {
    using T = std::remove_pointer_t<decltype(to)>;
    std::fill_n(to, call.outs[0].elements(), T{});
    for_differences(call, [&](int64_t i, double difference, double) {
      to[i] = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(factor(i) * difference));
    });
  });
}

}  // namespace

// y, targets: [batch spatial... target]
void squared_error(const KernelCall& call) {
  double loss = 0, count = 0;
  for_differences(call, [&](int64_t, double difference, double) { loss += difference * difference, count += 1; });
  store_sums(call, loss, count);
}

void squared_error_grad(const KernelCall& call) {
  const double twice = 2.0 * call.ins[2].as<double>()[0];
  store_differences(call, [&](int64_t) { return twice; });
}

// errors, norms: [batch], the first dim of y, or [target], its last
void field_errors(const KernelCall& call) {
  const std::span<double> errors = call.outs[0].as<double>(), norms = call.outs[1].as<double>();
  std::ranges::fill(errors, 0.0);
  std::ranges::fill(norms, 0.0);
  const auto size = std::max<int64_t>(std::ssize(errors), 1);
  const bool samples = call.outs[0].shape()[0].name == "batch";
  const int64_t inner = std::max<int64_t>(call.ins[0].elements() / size, 1);
  for_differences(call, [&](int64_t i, double difference, double target) {
    const auto at = static_cast<size_t>(samples ? i / inner : i % size);
    errors[at] += difference * difference;
    norms[at] += target * target;
  });
}

void field_errors_grad(const KernelCall& call) {
  const std::span<const double> derrors = call.ins[2].as<double>();
  const int64_t inner = std::max<int64_t>(call.ins[0].elements() / std::max<int64_t>(std::ssize(derrors), 1), 1);
  store_differences(call, [&](int64_t i) { return 2.0 * derrors[static_cast<size_t>(i / inner)]; });
}

bool field_errors_take(const Operands& o) {
  return tensor::is_floating(o.ins[0].dtype) && o.outs[0].dtype == tensor::DType::f64;
}

bool field_errors_grad_takes(const Operands& o) {
  return tensor::is_floating(o.ins[0].dtype) && o.ins[2].dtype == tensor::DType::f64;
}

bool sample_loss_takes(const Operands& o) {
  return tensor::is_floating(o.ins[0].dtype);
}

}  // namespace kintsugi::kernels::cpu

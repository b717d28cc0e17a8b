#include <algorithm>
#include <cmath>
#include <optional>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// Calls f(element of the labels, its sample's weight, the label, its logits) for each labelled sample or pixel.
template <typename F>
void for_labelled(const KernelCall& call, const F& f) {
  using In = ClassLossIn;
  const std::vector<double> logits = load(call.ins[In::kLogits]), weights = load(call.ins[In::kWeights]);
  const std::vector<int64_t> labels = load_integers(call.ins[In::kLabels]),
                             whole = positions_in_whole(call, call.ins[In::kLabels].shape());
  const auto classes = static_cast<size_t>(width(call.ins[In::kLogits].shape()));
  const size_t pixels = weights.empty() ? 1 : labels.size() / weights.size();
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= 0 && labels[i] < static_cast<int64_t>(classes) && whole[i] >= 0)
      f(i, weights[i / pixels], static_cast<size_t>(labels[i]), std::span(logits).subspan(i * classes, classes));
}

double log_sum_exp(std::span<const double> x) {
  const double most = *std::ranges::max_element(x);
  double sum = 0;
  for (double value : x) sum += std::exp(value - most);
  return most + std::log(sum);
}

// y - targets where counted: not at padding, and not where the target is missing (NaN).
std::vector<std::optional<double>> differences(const KernelCall& call) {
  const std::vector<double> y = load(call.ins[0]), targets = load(call.ins[1]);
  const std::vector<int64_t> whole = positions_in_whole(call, call.ins[0].shape());
  std::vector<std::optional<double>> found(y.size());
  for (size_t i = 0; i < y.size(); ++i)
    if (whole[i] >= 0 && !std::isnan(targets[i])) found[i] = y[i] - targets[i];
  return found;
}

}  // namespace

// logits: [batch spatial... class], labels: [batch spatial...], weights: [batch]
void class_loss(const KernelCall& call) {
  const double smoothing = call.attributes.number_or("smoothing", 0.0);
  double loss = 0, count = 0;
  for_labelled(call, [&](size_t, double weight, size_t label, std::span<const double> logits) {
    double mean = 0;
    for (const double z : logits) mean += z / static_cast<double>(logits.size());
    loss += weight * (log_sum_exp(logits) - (1 - smoothing) * logits[label] - (smoothing > 0 ? smoothing * mean : 0.0));
    count += weight;
  });
  store(call, 0, {&loss, 1});
  store(call, 1, {&count, 1});
}

void class_loss_grad(const KernelCall& call) {
  const double dloss = load_scalar(call.ins[ClassLossIn::kDloss]),
               smoothing = call.attributes.number_or("smoothing", 0.0);
  std::vector<double> dlogits(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_labelled(call, [&](size_t sample, double weight, size_t label, std::span<const double> logits) {
    const double lse = log_sum_exp(logits);
    double* row = dlogits.data() + sample * logits.size();
    for (size_t c = 0; c < logits.size(); ++c)
      row[c] = dloss * weight *
               (std::exp(logits[c] - lse) - (c == label ? 1 - smoothing : 0.0) -
                smoothing / static_cast<double>(logits.size()));
  });
  store(call, 0, dlogits);
}

// The rank of a label is the number of classes with a larger logit, plus earlier classes with an equal one.
void class_hits(const KernelCall& call) {
  const std::vector<double> logits = load(call.ins[0]);
  const std::vector<int64_t> labels = load_integers(call.ins[1]), whole = positions_in_whole(call, call.ins[1].shape());
  const int64_t classes = width(call.ins[0].shape());
  double top1 = 0, top5 = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes || whole[i] < 0) continue;
    const double* row = logits.data() + static_cast<int64_t>(i) * classes;
    int64_t place = 0;
    for (int64_t c = 0; c < classes; ++c)
      place += row[c] > row[labels[i]] || (row[c] == row[labels[i]] && c < labels[i]);
    // NaN does not compare: its label is never a hit.
    if (std::isnan(row[labels[i]])) continue;
    top1 += place < 1;
    top5 += place < 5;
  }
  store(call, 0, {&top1, 1});
  store(call, 1, {&top5, 1});
}

// y, targets: [batch spatial... target]
void squared_error(const KernelCall& call) {
  double loss = 0, count = 0;
  for (const std::optional<double>& difference : differences(call)) {
    if (!difference) continue;
    loss += *difference * *difference;
    count += 1;
  }
  store(call, 0, {&loss, 1});
  store(call, 1, {&count, 1});
}

void squared_error_grad(const KernelCall& call) {
  const double dloss = load_scalar(call.ins[2]);
  std::vector<double> dy;
  for (const std::optional<double>& difference : differences(call))
    dy.push_back(2.0 * dloss * difference.value_or(0.0));
  store(call, 0, dy);
}

// y, targets: [batch spatial... target]; errors, norms: [batch] or [target]
void field_errors(const KernelCall& call) {
  const std::vector<double> targets = load(call.ins[1]);
  const std::vector<int64_t> to = offsets(call.ins[0].shape(), call.outs[0].shape());
  const auto size = static_cast<size_t>(call.outs[0].elements());
  std::vector<double> errors(size, 0.0), norms(size, 0.0);
  const std::vector<std::optional<double>> found = differences(call);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    errors[static_cast<size_t>(to[i])] += *found[i] * *found[i];
    norms[static_cast<size_t>(to[i])] += targets[i] * targets[i];
  }
  store(call, 0, errors);
  store(call, 1, norms);
}

void field_errors_grad(const KernelCall& call) {
  const std::vector<double> derrors = load(call.ins[2]);
  const std::vector<int64_t> from = offsets(call.ins[0].shape(), call.ins[2].shape());
  std::vector<double> dy;
  for (const std::optional<double>& difference : differences(call))
    dy.push_back(2.0 * derrors[static_cast<size_t>(from[dy.size()])] * difference.value_or(0.0));
  store(call, 0, dy);
}

// errors, norms: [batch]
void relative_error(const KernelCall& call) {
  const std::vector<double> errors = load(call.ins[0]), norms = load(call.ins[1]);
  const std::vector<int64_t> whole = positions_in_whole(call, call.ins[0].shape());
  double loss = 0, count = 0;
  for (size_t i = 0; i < norms.size(); ++i) {
    if (norms[i] == 0 || whole[i] < 0) continue;
    loss += std::sqrt(errors[i] / norms[i]);
    count += 1;
  }
  store(call, 0, {&loss, 1});
  store(call, 1, {&count, 1});
}

// Where y equals the targets, the loss has no derivative: 0, as PyTorch's norm.
void relative_error_grad(const KernelCall& call) {
  const std::vector<double> errors = load(call.ins[0]), norms = load(call.ins[1]);
  const std::vector<int64_t> whole = positions_in_whole(call, call.ins[0].shape());
  const double dloss = load_scalar(call.ins[2]);
  std::vector<double> derrors(norms.size(), 0.0);
  for (size_t i = 0; i < norms.size(); ++i)
    if (norms[i] != 0 && errors[i] != 0 && whole[i] >= 0)
      derrors[i] = 0.5 * dloss / (std::sqrt(errors[i]) * std::sqrt(norms[i]));
  store(call, 0, derrors);
}

}  // namespace kintsugi::kernels::reference

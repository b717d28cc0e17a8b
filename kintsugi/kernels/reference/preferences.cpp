#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// Calls f(element) for each labelled position. labels: [batch seq]
template <typename F>
void for_labelled_tokens(const KernelCall& call, const View& labels, const F& f) {
  const std::vector<int64_t> label = load_integers(labels), whole = positions_in_whole(call, labels.shape());
  for (size_t i = 0; i < label.size(); ++i)
    if (label[i] >= 0 && whole[i] >= 0) f(i);
}

// Calls f(element, beta (margin - reference)) for each pair. margin, reference: [batch]
template <typename F>
void for_each_pair(const KernelCall& call, const F& f) {
  using In = PreferenceLossIn;
  const std::vector<double> margin = load(call.ins[In::kMargin]), reference = load(call.ins[In::kReference]);
  const std::vector<int64_t> whole = positions_in_whole(call, call.ins[In::kMargin].shape());
  const double beta = call.attributes.number("beta");
  for (size_t i = 0; i < margin.size(); ++i)
    if (whole[i] >= 0 && !std::isnan(reference[i])) f(i, beta * (margin[i] - reference[i]));
}

}  // namespace

void weighted_scores(const KernelCall& call) {
  using In = WeightedScoresIn;
  const View& labels = call.ins[In::kLabels];
  const std::vector<double> lse = load(call.ins[In::kLse]), target = load(call.ins[In::kTarget]),
                            weights = load(call.ins[In::kWeights]);
  const auto columns = static_cast<size_t>(labels.size("seq"));
  std::vector<double> score(static_cast<size_t>(labels.size("batch")), 0.0);
  for_labelled_tokens(call, labels, [&](size_t i) { score[i / columns] += weights[i] * (target[i] - lse[i]); });
  store(call, 0, score);
}

void weighted_scores_grad(const KernelCall& call) {
  using In = WeightedScoresGradIn;
  const View& labels = call.ins[In::kLabels];
  const std::vector<double> weights = load(call.ins[In::kWeights]), dscore = load(call.ins[In::kDscore]);
  const auto columns = static_cast<size_t>(labels.size("seq"));
  std::vector<double> dlse(weights.size(), 0.0), dtarget(weights.size(), 0.0);
  for_labelled_tokens(call, labels, [&](size_t i) {
    dtarget[i] = weights[i] * dscore[i / columns];
    dlse[i] = -dtarget[i];
  });
  store(call, 0, dlse);
  store(call, 1, dtarget);
}

void preference_loss(const KernelCall& call) {
  using Out = PreferenceLossOut;
  double loss = 0, count = 0, correct = 0, rewards = 0;
  for_each_pair(call, [&](size_t, double reward) {
    loss += std::max(-reward, 0.0) + std::log1p(std::exp(-std::abs(reward)));
    count += 1;
    correct += reward > 0 ? 1 : 0;
    rewards += reward;
  });
  store(call, Out::kLoss, {&loss, 1});
  store(call, Out::kCount, {&count, 1});
  store(call, Out::kCorrect, {&correct, 1});
  store(call, Out::kReward, {&rewards, 1});
}

void preference_loss_grad(const KernelCall& call) {
  const double dloss = load_scalar(call.ins[PreferenceLossIn::kDloss]), beta = call.attributes.number("beta");
  std::vector<double> dmargin(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_each_pair(call, [&](size_t i, double reward) { dmargin[i] = -dloss * beta / (1 + std::exp(reward)); });
  store(call, 0, dmargin);
}

void policy_loss(const KernelCall& call) {
  using In = PolicyLossIn;
  const std::vector<double> lse = load(call.ins[In::kLse]), target = load(call.ins[In::kTarget]),
                            weights = load(call.ins[In::kWeights]), sampled = load(call.ins[In::kSampled]);
  const double clip = call.attributes.number_or("clip", 0.0);
  double loss = 0, count = 0, gap = 0;
  for_labelled_tokens(call, call.ins[In::kLabels], [&](size_t i) {
    const double now = target[i] - lse[i], ratio = std::exp(now - sampled[i]);
    loss -=
        clip > 0 ? std::min(weights[i] * ratio, weights[i] * std::clamp(ratio, 1 - clip, 1 + clip)) : weights[i] * now;
    count += 1;
    gap += std::abs(now - sampled[i]);
  });
  store(call, PolicyLossOut::kLoss, {&loss, 1});
  store(call, PolicyLossOut::kCount, {&count, 1});
  store(call, PolicyLossOut::kGap, {&gap, 1});
}

void policy_loss_grad(const KernelCall& call) {
  using In = PolicyLossIn;
  const std::vector<double> lse = load(call.ins[In::kLse]), target = load(call.ins[In::kTarget]),
                            weights = load(call.ins[In::kWeights]), sampled = load(call.ins[In::kSampled]);
  const double clip = call.attributes.number_or("clip", 0.0), dloss = load_scalar(call.ins[In::kDloss]);
  std::vector<double> dlse(lse.size(), 0.0), dtarget(lse.size(), 0.0);
  for_labelled_tokens(call, call.ins[In::kLabels], [&](size_t i) {
    double by = weights[i];
    if (clip > 0) {
      const double ratio = std::exp(target[i] - lse[i] - sampled[i]);
      const bool bound = weights[i] > 0 ? ratio > 1 + clip : ratio < 1 - clip;
      by = bound ? 0.0 : by * ratio;
    }
    dtarget[i] = -dloss * by;
    dlse[i] = dloss * by;
  });
  store(call, 0, dlse);
  store(call, 1, dtarget);
}

}  // namespace kintsugi::kernels::reference

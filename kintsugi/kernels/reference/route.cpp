#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "kintsugi/kernels/reference/experts.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// The scores of one token; gradient() differentiates them by the logits.
struct Scores {
  std::vector<double> of;  // [candidate]
  bool sigmoid = false;

  Scores(std::span<const double> logits, const tensor::Attributes& attributes)
      : of(logits.begin(), logits.end()), sigmoid(attributes.text("scores") == "sigmoid") {
    if (sigmoid) {
      for (double& s : of) s = 1.0 / (1.0 + std::exp(-s));
      return;
    }
    const double most = *std::max_element(of.begin(), of.end());
    double sum = 0;
    for (double& s : of) sum += s = std::exp(s - most);
    for (double& s : of) s /= sum;
  }

  // Computes dlogits, given the gradient of each score.
  void gradient(std::span<const double> dscores, std::span<double> dlogits) const {
    double mean = 0;
    for (size_t i = 0; i < of.size(); ++i) mean += of[i] * dscores[i];
    for (size_t i = 0; i < of.size(); ++i)
      dlogits[i] = sigmoid ? of[i] * (1.0 - of[i]) * dscores[i] : of[i] * (dscores[i] - mean);
  }
};

// The experts that a token may use: all, or those of the groups with the largest scores (DeepSeek-V3 2024, section
// 2.1.2), of which ties go to the first. A group's score is the sum of its two largest.
std::vector<bool> in_chosen_groups(const std::vector<double>& scores, const tensor::Attributes& attributes) {
  const auto groups = static_cast<size_t>(attributes.integer_or("groups", 1));
  std::vector<bool> allowed(scores.size(), groups == 1);
  if (groups == 1) return allowed;
  const size_t each = scores.size() / groups;
  std::vector<double> of_group;
  for (size_t g = 0; g < groups; ++g) {
    std::vector<double> mine(scores.begin() + static_cast<std::ptrdiff_t>(g * each),
                             scores.begin() + static_cast<std::ptrdiff_t>((g + 1) * each));
    std::sort(mine.begin(), mine.end(), std::greater<>());
    of_group.push_back(mine[0] + (each > 1 ? mine[1] : 0.0));
  }
  for (int64_t n = 0; n < attributes.integer("groups_per_token"); ++n) {
    size_t best = groups;
    for (size_t g = 0; g < groups; ++g)
      if (!allowed[g * each] && (best == groups || of_group[g] > of_group[best])) best = g;
    std::fill_n(allowed.begin() + static_cast<std::ptrdiff_t>(best * each), each, true);
  }
  return allowed;
}

// The position of each row of the first two dims, -1 at padding.
std::vector<int64_t> places_of_rows(const KernelCall& call, const Shape& shape) {
  return positions_in_whole(call, Shape(std::vector<tensor::Dim>(shape.begin(), shape.begin() + 2)));
}

}  // namespace

void route(const KernelCall& call) {
  const View &logits_view = call.ins[RouteIn::kLogits], &bias_view = call.ins[RouteIn::kBias];
  const auto candidates = static_cast<size_t>(width(logits_view.shape()));
  const auto top_k = static_cast<size_t>(call.attributes.integer("top_k"));
  const bool normalize = call.attributes.integer("normalize") != 0;
  const double scale = call.attributes.number("scale");
  const std::vector<double> logits = load(logits_view);
  const std::vector<double> bias = bias_view.data ? load(bias_view) : std::vector<double>(candidates, 0.0);
  const std::vector<int64_t> places = places_of_rows(call, logits_view.shape());
  std::vector<double> weights(places.size() * top_k, 0.0);
  const std::span<int32_t> experts = call.outs[RouteOut::kExperts].as<int32_t>();
  for (size_t row = 0; row < places.size(); ++row) {
    std::fill_n(experts.begin() + static_cast<std::ptrdiff_t>(row * top_k), top_k, 0);
    if (places[row] < 0) continue;
    const std::span<const double> mine = std::span(logits).subspan(row * candidates, candidates);
    const Scores scores{mine, call.attributes};
    // Scores that are monotonic in the logits are not compared themselves: rounding makes some of them equal.
    std::vector<double> compared(mine.begin(), mine.end()), biased = scores.of;
    for (size_t e = 0; e < candidates; ++e) biased[e] += bias[e];
    if (bias_view.data) compared = biased;
    std::vector<bool> free = in_chosen_groups(biased, call.attributes);
    double sum = 0;
    for (size_t c = 0; c < top_k; ++c) {
      size_t best = candidates;
      for (size_t e = 0; e < candidates; ++e)
        if (free[e] && (best == candidates || compared[e] > compared[best])) best = e;
      free[best] = false;
      experts[row * top_k + c] = static_cast<int32_t>(best);
      sum += weights[row * top_k + c] = scores.of[best];
    }
    for (size_t c = 0; c < top_k; ++c) weights[row * top_k + c] *= scale / (normalize ? sum : 1.0);
  }
  store(call, RouteOut::kWeights, weights);
}

void route_grad(const KernelCall& call) {
  const View& logits_view = call.ins[RouteGradIn::kLogits];
  const auto candidates = static_cast<size_t>(width(logits_view.shape()));
  const auto top_k = static_cast<size_t>(call.attributes.integer("top_k"));
  const bool normalize = call.attributes.integer("normalize") != 0;
  const double scale = call.attributes.number("scale");
  const std::vector<double> logits = load(logits_view), dweights = load(call.ins[RouteGradIn::kDweights]);
  const std::vector<int64_t> experts = load_integers(call.ins[RouteGradIn::kExperts]);
  const std::vector<int64_t> places = places_of_rows(call, logits_view.shape());
  std::vector<double> dlogits(logits.size(), 0.0);
  for (size_t row = 0; row < places.size(); ++row) {
    if (places[row] < 0) continue;
    const Scores scores{std::span(logits).subspan(row * candidates, candidates), call.attributes};
    double sum = 0, mean = 0;  // of the chosen scores; of the gradients of their weights
    for (size_t c = 0; c < top_k; ++c) {
      const double score = scores.of[static_cast<size_t>(experts[row * top_k + c])];
      sum += score;
      mean += score * dweights[row * top_k + c];
    }
    std::vector<double> dscores(candidates, 0.0);
    for (size_t c = 0; c < top_k; ++c) {
      const double dw = dweights[row * top_k + c];
      dscores[static_cast<size_t>(experts[row * top_k + c])] += scale * (normalize ? (dw - mean / sum) / sum : dw);
    }
    scores.gradient(dscores, std::span(dlogits).subspan(row * candidates, candidates));
  }
  store(call, 0, dlogits);
}

namespace {

// Calls f(row, sample, normalized scores) for each position that is not padding.
template <typename F>
void for_scores(const KernelCall& call, const std::vector<double>& logits, const F& f) {
  const Shape& shape = call.ins[BalanceLossIn::kLogits].shape();
  const auto candidates = static_cast<size_t>(width(shape)), seq = static_cast<size_t>(shape[1].size);
  const std::vector<int64_t> places = places_of_rows(call, shape);
  for (size_t row = 0; row < places.size(); ++row)
    if (places[row] >= 0)
      f(row, row / seq, Scores{std::span(logits).subspan(row * candidates, candidates), call.attributes});
}

// The cost factor of each expert's scores: its share of the tokens times the number of experts. Of each sample the
// tokens are its own, or with a load all of that; 1 if the load is of no tokens.
std::vector<double> costs_of(const KernelCall& call, const tensor::View& load_view) {
  const std::vector<int64_t> counts = load_integers(call.ins[BalanceLossIn::kCounts]);
  const auto experts = static_cast<double>(width(call.ins[BalanceLossIn::kCounts].shape()));
  std::vector<double> costs;
  if (load_view.data) {
    const std::vector<double> all = load(load_view);
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    for (size_t i = 0; i < counts.size(); ++i) costs.push_back(sum > 0.0 ? all[i % all.size()] * experts / sum : 1.0);
    return costs;
  }
  const auto tokens = static_cast<double>(call.index("seq").whole() * call.attributes.integer("top_k"));
  for (int64_t count : counts) costs.push_back(static_cast<double>(count) * experts / tokens);
  return costs;
}

// The weight of each sample's tokens: the share of its positions that have labels. labels: [batch label_seq]
std::vector<double> shares_of(const tensor::View& logits, const tensor::View& labels) {
  std::vector<double> shares(static_cast<size_t>(logits.shape()[0].size), 1.0);
  if (!labels.data) return shares;
  const std::vector<int64_t> all = load_integers(labels);
  const size_t seq = all.size() / std::max<size_t>(1, shares.size());
  for (size_t sample = 0; sample < shares.size(); ++sample) {
    const auto of_sample = std::span(all).subspan(sample * seq, seq);
    shares[sample] = static_cast<double>(std::ranges::count_if(of_sample, [](int64_t label) { return label >= 0; })) /
                     static_cast<double>(seq);
  }
  return shares;
}

}  // namespace

void balance_loss(const KernelCall& call) {
  const View& view = call.ins[BalanceLossIn::kLogits];
  const std::vector<double> logits = load(view), costs = costs_of(call, call.ins[BalanceLossIn::kLoad]),
                            shares = shares_of(view, call.ins[BalanceLossIn::kLabels]);
  double loss = 0;
  for_scores(call, logits, [&](size_t, size_t sample, const Scores& scores) {
    double sum = 0, cost = 0;
    for (size_t e = 0; e < scores.of.size(); ++e) {
      sum += scores.of[e];
      cost += scores.of[e] * costs[sample * scores.of.size() + e];
    }
    loss += shares[sample] * (cost / sum);
  });
  store(call, 0, std::span(&loss, 1));
}

void balance_loss_grad(const KernelCall& call) {
  const View& view = call.ins[BalanceLossGradIn::kLogits];
  const std::vector<double> logits = load(view), costs = costs_of(call, call.ins[BalanceLossGradIn::kLoad]),
                            shares = shares_of(view, call.ins[BalanceLossGradIn::kLabels]);
  const double dloss = load_scalar(call.ins[BalanceLossGradIn::kDloss]);
  std::vector<double> dlogits(logits.size(), 0.0);
  for_scores(call, logits, [&](size_t row, size_t sample, const Scores& scores) {
    const size_t candidates = scores.of.size();
    double sum = 0, cost = 0;
    for (size_t e = 0; e < candidates; ++e) {
      sum += scores.of[e];
      cost += scores.of[e] * costs[sample * candidates + e];
    }
    std::vector<double> dscores;
    for (size_t e = 0; e < candidates; ++e)
      dscores.push_back(dloss * shares[sample] * (costs[sample * candidates + e] - cost / sum) / sum);
    scores.gradient(dscores, std::span(dlogits).subspan(row * candidates, candidates));
  });
  store(call, 0, dlogits);
}

namespace {

// Calls f(row, sample, log of the sum of exponentials, logits) for each position that is not padding.
template <typename F>
void for_log_sums(const KernelCall& call, const std::vector<double>& logits, const F& f) {
  const Shape& shape = call.ins[RouterZLossIn::kLogits].shape();
  const auto candidates = static_cast<size_t>(width(shape)), seq = static_cast<size_t>(shape[1].size);
  const std::vector<int64_t> places = places_of_rows(call, shape);
  for (size_t row = 0; row < places.size(); ++row) {
    if (places[row] < 0) continue;
    const std::span<const double> mine = std::span(logits).subspan(row * candidates, candidates);
    const double most = *std::max_element(mine.begin(), mine.end());
    double sum = 0;
    for (const double x : mine) sum += std::exp(x - most);
    f(row, row / seq, most + std::log(sum), mine);
  }
}

}  // namespace

void router_z_loss(const KernelCall& call) {
  const View& view = call.ins[RouterZLossIn::kLogits];
  const std::vector<double> logits = load(view), shares = shares_of(view, call.ins[RouterZLossIn::kLabels]);
  double loss = 0;
  for_log_sums(call, logits, [&](size_t, size_t sample, double log_sum, std::span<const double>) {
    loss += shares[sample] * (log_sum * log_sum);
  });
  store(call, 0, std::span(&loss, 1));
}

void router_z_loss_grad(const KernelCall& call) {
  const View& view = call.ins[RouterZLossGradIn::kLogits];
  const std::vector<double> logits = load(view), shares = shares_of(view, call.ins[RouterZLossGradIn::kLabels]);
  const double dloss = load_scalar(call.ins[RouterZLossGradIn::kDloss]);
  std::vector<double> dlogits(logits.size(), 0.0);
  for_log_sums(call, logits, [&](size_t row, size_t sample, double log_sum, std::span<const double> mine) {
    for (size_t e = 0; e < mine.size(); ++e)
      dlogits[row * mine.size() + e] = 2.0 * dloss * shares[sample] * log_sum * std::exp(mine[e] - log_sum);
  });
  store(call, 0, dlogits);
}

void expert_load(const KernelCall& call) {
  const std::vector<int64_t> counts = load_integers(call.ins[0]);  // [batch expert]
  std::vector<double> load(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for (size_t i = 0; i < counts.size(); ++i) load[i % load.size()] += static_cast<double>(counts[i]);
  store(call, 0, load);
}

void expert_balance(const KernelCall& call) {
  double most = 0, sum = 0;
  const std::vector<double> all = load(call.ins[0]);
  for (double x : all) {
    most = std::max(most, x);
    sum += x;
  }
  const double balance = sum > 0 ? most * static_cast<double>(all.size()) / sum : 0.0;
  store(call, 0, std::span(&balance, 1));
}

void balance_bias(const KernelCall& call) {
  std::vector<double> bias = load(call.ins[BalanceBiasIn::kBias]);
  const std::vector<double> all = load(call.ins[BalanceBiasIn::kLoad]);
  const bool finite = load_scalar(call.ins[BalanceBiasIn::kFinite]) != 0.0;
  const double rate = call.attributes.number("rate");
  double sum = 0;
  for (double x : all) sum += x;
  const double mean = sum / static_cast<double>(all.size());
  for (size_t e = 0; e < bias.size(); ++e)
    if (finite && all[e] != mean) bias[e] += all[e] < mean ? rate : -rate;
  store(call, 0, bias);
}

}  // namespace kintsugi::kernels::reference

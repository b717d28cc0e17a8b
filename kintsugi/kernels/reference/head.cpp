#include <cmath>
#include <limits>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// x: [batch seq embed], table: [vocab embed], labels: [batch seq], bias: [vocab], or empty
struct Setting {
  explicit Setting(const KernelCall& call)
      : x(load(call.ins[HeadIn::kX])),
        table(load(call.ins[HeadIn::kTable])),
        labels(load_integers(call.ins[HeadIn::kLabels])),
        bias(call.ins[HeadIn::kBias].data ? load(call.ins[HeadIn::kBias]) : std::vector<double>()),
        embed(width(call.ins[HeadIn::kX].shape())),
        token_of(global_of_local(call.index("vocab"))) {}

  // The logits of one position: [vocab], -infinity at padding rows.
  std::vector<double> logits(size_t position) const {
    std::vector<double> list(token_of.size(), -kInfinity);
    const double* x_row = x.data() + static_cast<int64_t>(position) * embed;
    for (size_t v = 0; v < list.size(); ++v) {
      if (token_of[v] < 0) continue;
      const double* row = table.data() + static_cast<int64_t>(v) * embed;
      list[v] = bias.empty() ? 0 : bias[v];
      for (int64_t e = 0; e < embed; ++e) list[v] += x_row[e] * row[e];
    }
    return list;
  }

  std::vector<double> x, table;
  std::vector<int64_t> labels;
  std::vector<double> bias;
  int64_t embed;
  std::vector<int64_t> token_of;  // [local row of the table]: its global index
};

struct Statistics {
  std::vector<double> lse, target, top;  // [batch seq]
  std::vector<double> logits;            // [batch seq vocab], 0 at padding rows
};

Statistics statistics_of(const Setting& s) {
  std::vector<double> lse, target, tops, all;
  for (size_t position = 0; position < s.labels.size(); ++position) {
    const std::vector<double> logits = s.logits(position);
    for (double logit : logits) all.push_back(logit == -kInfinity ? 0 : logit);
    double top = -kInfinity, sum = 0, mine = 0;
    for (double logit : logits) {
      if (!(logit <= top)) top = logit;
    }
    for (size_t v = 0; v < logits.size(); ++v) {
      if (s.token_of[v] < 0) continue;
      sum += std::exp(logits[v] - top);
      if (s.token_of[v] == s.labels[position]) mine = logits[v];
    }
    lse.push_back(top == -kInfinity ? -kInfinity : top + std::log(sum));
    target.push_back(mine);
    tops.push_back(top);
  }
  return {lse, target, tops, all};
}

struct Gradients {
  std::vector<double> x, table, bias;
};

// `all`: logits of all positions.
Gradients gradients_of(const Setting& s, const std::vector<double>& all, const std::vector<double>& lse,
                       const std::vector<double>& dlse, const std::vector<double>& dtarget) {
  std::vector<double> dx(s.x.size(), 0.0), dtable(s.table.size(), 0.0), dbias(s.token_of.size(), 0.0);
  for (size_t position = 0; position < s.labels.size(); ++position) {
    if (dlse[position] == 0 && dtarget[position] == 0) continue;
    const double* logits = all.data() + position * s.token_of.size();
    const double* x_row = s.x.data() + static_cast<int64_t>(position) * s.embed;
    double* dx_row = dx.data() + static_cast<int64_t>(position) * s.embed;
    for (size_t v = 0; v < s.token_of.size(); ++v) {
      if (s.token_of[v] < 0) continue;
      double dlogit = std::exp(logits[v] - lse[position]) * dlse[position];
      if (s.token_of[v] == s.labels[position]) dlogit += dtarget[position];
      dbias[v] += dlogit;
      const double* row = s.table.data() + static_cast<int64_t>(v) * s.embed;
      double* drow = dtable.data() + static_cast<int64_t>(v) * s.embed;
      for (int64_t e = 0; e < s.embed; ++e) {
        dx_row[e] += dlogit * row[e];
        drow[e] += dlogit * x_row[e];
      }
    }
  }
  return {dx, dtable, dbias};
}

}  // namespace

void head(const KernelCall& call) {
  const auto [lse, target, top, logits] = statistics_of(Setting(call));
  store(call, HeadOut::kLse, lse);
  store(call, HeadOut::kTarget, target);
  if (call.outs[HeadOut::kLogits].data) store(call, HeadOut::kLogits, logits);
  if (call.outs[HeadOut::kTop].data) store(call, HeadOut::kTop, top);
}

void head_grad(const KernelCall& call) {
  using In = HeadGradIn;
  const Setting s(call);
  const std::vector<double> logits = call.ins[In::kLogits].data ? load(call.ins[In::kLogits]) : statistics_of(s).logits;
  const Gradients d =
      gradients_of(s, logits, load(call.ins[In::kLse]), load(call.ins[In::kDlse]), load(call.ins[In::kDtarget]));
  store(call, HeadGradOut::kDx, d.x);
  if (call.outs[HeadGradOut::kDtable].data) store(call, HeadGradOut::kDtable, d.table);
  if (call.outs[HeadGradOut::kDbias].data) store(call, HeadGradOut::kDbias, d.bias);
}

void head_with_grad(const KernelCall& call) {
  using In = HeadWithGradIn;
  using Out = HeadWithGradOut;
  const Setting s(call);
  const Statistics made = statistics_of(s);
  const Gradients d = gradients_of(s, made.logits, made.lse, load(call.ins[In::kDlse]), load(call.ins[In::kDtarget]));
  store(call, Out::kLse, made.lse);
  store(call, Out::kTarget, made.target);
  store(call, Out::kDx, d.x);
  if (call.outs[Out::kDtable].data) store(call, Out::kDtable, d.table);
  if (call.outs[Out::kDbias].data) store(call, Out::kDbias, d.bias);
}

}  // namespace kintsugi::kernels::reference

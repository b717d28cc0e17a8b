#include <cmath>
#include <limits>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// x: [batch seq embed], table: [vocab embed], labels: [batch seq]
struct Setting {
  explicit Setting(const KernelCall& call)
      : x(load(call.ins[0])),
        table(load(call.ins[1])),
        labels(load_integers(call.ins[2])),
        embed(width(call.ins[0].shape())),
        token_of(global_of_local(call.index("vocab"))) {}

  // The logits of one position: [vocab], -infinity where the row is padding.
  std::vector<double> logits(size_t position) const {
    std::vector<double> list(token_of.size(), -kInfinity);
    const double* x_row = x.data() + static_cast<int64_t>(position) * embed;
    for (size_t v = 0; v < list.size(); ++v) {
      if (token_of[v] < 0) continue;
      const double* row = table.data() + static_cast<int64_t>(v) * embed;
      list[v] = 0;
      for (int64_t e = 0; e < embed; ++e) list[v] += x_row[e] * row[e];
    }
    return list;
  }

  std::vector<double> x, table;
  std::vector<int64_t> labels;
  int64_t embed;
  std::vector<int64_t> token_of;  // the global index of each local row of the table
};

struct Statistics {
  std::vector<double> lse, target;  // [batch seq]
  std::vector<double> logits;       // [batch seq vocab], 0 where the row is padding
};

Statistics statistics_of(const Setting& s) {
  std::vector<double> lse, target, all;
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
  }
  return {lse, target, all};
}

// Stores dx and dtable as outputs `first` and `first` + 1. `all`: logits of all positions.
void store_gradients(const KernelCall& call, const Setting& s, const std::vector<double>& all,
                     const std::vector<double>& lse, const std::vector<double>& dlse,
                     const std::vector<double>& dtarget, size_t first) {
  std::vector<double> dx(s.x.size(), 0.0), dtable(s.table.size(), 0.0);
  for (size_t position = 0; position < s.labels.size(); ++position) {
    if (dlse[position] == 0 && dtarget[position] == 0) continue;
    const double* logits = all.data() + position * s.token_of.size();
    const double* x_row = s.x.data() + static_cast<int64_t>(position) * s.embed;
    double* dx_row = dx.data() + static_cast<int64_t>(position) * s.embed;
    for (size_t v = 0; v < s.token_of.size(); ++v) {
      if (s.token_of[v] < 0) continue;
      double dlogit = std::exp(logits[v] - lse[position]) * dlse[position];
      if (s.token_of[v] == s.labels[position]) dlogit += dtarget[position];
      const double* row = s.table.data() + static_cast<int64_t>(v) * s.embed;
      double* drow = dtable.data() + static_cast<int64_t>(v) * s.embed;
      for (int64_t e = 0; e < s.embed; ++e) {
        dx_row[e] += dlogit * row[e];
        drow[e] += dlogit * x_row[e];
      }
    }
  }
  store(call, first, dx);
  store(call, first + 1, dtable);
}

}  // namespace

void head(const KernelCall& call) {
  const auto [lse, target, logits] = statistics_of(Setting(call));
  store(call, 0, lse);
  store(call, 1, target);
  if (call.outs.size() == 3) store(call, 2, logits);
}

void head_grad(const KernelCall& call) {
  const Setting s(call);
  const std::vector<double> logits = call.ins.size() == 7 ? load(call.ins[6]) : statistics_of(s).logits;
  store_gradients(call, s, logits, load(call.ins[3]), load(call.ins[4]), load(call.ins[5]), 0);
}

void head_with_grad(const KernelCall& call) {
  const Setting s(call);
  const auto [lse, target, logits] = statistics_of(s);
  store(call, 0, lse);
  store(call, 1, target);
  store_gradients(call, s, logits, lse, load(call.ins[3]), load(call.ins[4]), 2);
}

}  // namespace kintsugi::kernels::reference

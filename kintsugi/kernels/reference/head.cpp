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

}  // namespace

void head(const KernelCall& call) {
  const Setting s(call);
  std::vector<double> lse, target;  // [batch seq]
  for (size_t position = 0; position < s.labels.size(); ++position) {
    const std::vector<double> logits = s.logits(position);
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
  store(call, 0, lse);
  store(call, 1, target);
}

void head_grad(const KernelCall& call) {
  const Setting s(call);
  const std::vector<double> lse = load(call.ins[3]), dlse = load(call.ins[4]), dtarget = load(call.ins[5]);
  std::vector<double> dx(s.x.size(), 0.0), dtable(s.table.size(), 0.0);
  for (size_t position = 0; position < s.labels.size(); ++position) {
    if (dlse[position] == 0 && dtarget[position] == 0) continue;
    const std::vector<double> logits = s.logits(position);
    const double* x_row = s.x.data() + static_cast<int64_t>(position) * s.embed;
    double* dx_row = dx.data() + static_cast<int64_t>(position) * s.embed;
    for (size_t v = 0; v < logits.size(); ++v) {
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
  store(call, 0, dx);
  store(call, 1, dtable);
}

}  // namespace kintsugi::kernels::reference

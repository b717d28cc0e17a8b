#include <cmath>

#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

constexpr double kSmall = 1e-30;  // epsilon 1 of algorithm 4

// The weight of the new term in the moving sums of update t, from 1.
double new_share(const KernelCall& call, double updates) {
  return std::pow(updates + 1, -call.attributes.number("factor_decay"));
}

}  // namespace

void factored_sums(const KernelCall& call) {
  const std::vector<double> g = load(call.ins[0]);
  const double factor = load_scalar(call.ins[1]);
  const MatrixSizes m = matrix_sizes(call.ins[0].shape(), call.attributes);
  std::vector<double> rows(static_cast<size_t>(m.count * m.rows), 0.0),
      columns(static_cast<size_t>(m.count * m.columns), 0.0);
  for (int64_t i = 0; i < m.count * m.rows; ++i)
    for (int64_t j = 0; j < m.columns; ++j) {
      const double x = factor * g[static_cast<size_t>(i * m.columns + j)];
      rows[static_cast<size_t>(i)] += x * x;
      columns[static_cast<size_t>(i / m.rows * m.columns + j)] += x * x;
    }
  store(call, 0, rows);
  store(call, 1, columns);
}

void factored_moments(const KernelCall& call) {
  using In = FactoredMomentsIn;
  std::vector<double> r = load(call.ins[In::kR]), c = load(call.ins[In::kC]);
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    const double share = new_share(call, load_scalar(call.ins[In::kUpdates]));
    const std::vector<double> rows = load(call.ins[In::kRowSums]), columns = load(call.ins[In::kColumnSums]);
    const auto num_rows = static_cast<double>(call.attributes.integer("rows")),
               num_columns = static_cast<double>(call.attributes.integer("columns"));
    for (size_t i = 0; i < r.size(); ++i) r[i] = (1 - share) * r[i] + share * (rows[i] + num_columns * kSmall);
    for (size_t i = 0; i < c.size(); ++i) c[i] = (1 - share) * c[i] + share * (columns[i] + num_rows * kSmall);
  }
  store(call, 0, r);
  store(call, 1, c);
}

void factored_direction(const KernelCall& call) {
  using In = FactoredDirectionIn;
  const std::vector<double> g = load(call.ins[In::kG]), r = load(call.ins[In::kR]), c = load(call.ins[In::kC]),
                            sum = load(call.ins[In::kRSum]);
  const double factor = load_scalar(call.ins[In::kFactor]);
  const MatrixSizes m = matrix_sizes(call.ins[In::kG].shape(), call.attributes);
  std::vector<double> u(g.size(), 0.0);
  if (load_scalar(call.ins[In::kFinite]) != 0)
    for (int64_t i = 0; i < m.count * m.rows; ++i)
      for (int64_t j = 0; j < m.columns; ++j) {
        const auto at = static_cast<size_t>(i * m.columns + j);
        const int64_t matrix = i / m.rows;
        const double moment = r[static_cast<size_t>(i)] * c[static_cast<size_t>(matrix * m.columns + j)] /
                              sum[static_cast<size_t>(matrix)];
        if (g[at] != 0) u[at] = factor * g[at] / std::sqrt(moment);
      }
  store(call, 0, u);
}

void unfactored_direction(const KernelCall& call) {
  using In = UnfactoredDirectionIn;
  std::vector<double> v = load(call.ins[In::kV]);
  const std::vector<double> g = load(call.ins[In::kG]);
  const double factor = load_scalar(call.ins[In::kFactor]);
  std::vector<double> u(v.size(), 0.0);
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    const double share = new_share(call, load_scalar(call.ins[In::kUpdates]));
    for (size_t i = 0; i < v.size(); ++i) {
      const double x = factor * g[i];
      v[i] = (1 - share) * v[i] + share * (x * x + kSmall);
      u[i] = x / std::sqrt(v[i]);
    }
  }
  store(call, 0, v);
  store(call, 1, u);
}

}  // namespace kintsugi::kernels::reference

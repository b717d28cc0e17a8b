#include <cmath>

#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void muon_momentum(const KernelCall& call) {
  using In = MuonMomentumIn;
  std::vector<double> m = load(call.ins[In::kM]);
  const std::vector<double> g = load(call.ins[In::kG]);
  const double factor = load_scalar(call.ins[In::kFactor]), momentum = call.attributes.number("momentum");
  std::vector<double> u(m.size(), 0.0);
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    for (size_t i = 0; i < m.size(); ++i) {
      const double gradient = g[i] * factor;
      m[i] = momentum * m[i] + (1 - momentum) * gradient;
      u[i] = momentum * m[i] + (1 - momentum) * gradient;
    }
  }
  store(call, 0, m);
  store(call, 1, u);
}

void orthogonalize(const KernelCall& call) {
  constexpr double kEpsilon = 1e-7;
  const MatrixSizes sizes = matrix_sizes(call.ins[0].shape(), call.attributes);
  const std::vector<double> in = load(call.ins[0]);
  std::vector<double> out(in.size());
  // x: [short long], transposed if there are more rows than columns.
  const bool turned = sizes.rows > sizes.columns;
  const auto n = static_cast<size_t>(turned ? sizes.columns : sizes.rows),
             k = static_cast<size_t>(turned ? sizes.rows : sizes.columns);
  const double scale = muon_scale(sizes, call.attributes);
  std::vector<double> x(n * k), gram(n * n), factor(n * n), next(n * k);
  for (int64_t matrix = 0; matrix < sizes.count; ++matrix) {
    const size_t begin = static_cast<size_t>(matrix) * n * k;
    const auto place = [&](size_t i, size_t j) { return begin + (turned ? j * n + i : i * k + j); };
    double squares = 0;
    for (size_t i = 0; i < n * k; ++i) squares += in[begin + i] * in[begin + i];
    const double norm = std::max(std::sqrt(squares), kEpsilon);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < k; ++j) x[i * k + j] = in[place(i, j)] / norm;
    for (int step = 0; step < kNewtonSchulzSteps; ++step) {
      const auto [a, b, c] = kNewtonSchulz;
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (size_t l = 0; l < k; ++l) sum += x[i * k + l] * x[j * k + l];
          gram[i * n + j] = sum;
        }
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (size_t l = 0; l < n; ++l) sum += gram[i * n + l] * gram[l * n + j];
          factor[i * n + j] = b * gram[i * n + j] + c * sum;
        }
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < k; ++j) {
          double sum = a * x[i * k + j];
          for (size_t l = 0; l < n; ++l) sum += factor[i * n + l] * x[l * k + j];
          next[i * k + j] = sum;
        }
      x.swap(next);
    }
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < k; ++j) out[place(i, j)] = scale * x[i * k + j];
  }
  store(call, 0, out);
}

}  // namespace kintsugi::kernels::reference

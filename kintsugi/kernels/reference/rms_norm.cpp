#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

namespace {

// x: [... the dims of gamma], one row per position of the other dims. `gamma` includes the offset.
struct Setting {
  explicit Setting(const KernelCall& call)
      : x(load(call.ins[NormIn::kX])),
        gamma(load(call.ins[NormIn::kGamma])),
        width(static_cast<int64_t>(gamma.size())),
        rows(width == 0 ? 0 : static_cast<int64_t>(x.size()) / width) {
    for (double& g : gamma) g += call.attributes.number_or("gamma_offset", 0);
  }

  std::vector<double> x, gamma;
  int64_t width, rows;
};

// 1 / sqrt(mean of squares + epsilon) of a row.
double inverse_root(const double* x, int64_t n, double epsilon) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  return 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
}

}  // namespace

void rms_norm(const KernelCall& call) {
  const Setting s(call);
  std::vector<double> y;
  for (int64_t row = 0; row < s.rows; ++row) {
    const double* x_row = s.x.data() + row * s.width;
    const double r = inverse_root(x_row, s.width, call.attributes.number("epsilon"));
    for (size_t i = 0; i < s.gamma.size(); ++i) y.push_back(x_row[i] * r * s.gamma[i]);
  }
  store(call, 0, y);
}

// With xhat = x * r and g = dy * gamma, offset included: dx = r * (g - xhat * mean(g * xhat)).
void rms_norm_grad(const KernelCall& call) {
  using Out = NormGradOut;
  const Setting s(call);
  const std::vector<double> dy = load(call.ins[NormGradIn::kDy]);
  std::vector<double> dx, dgamma(s.gamma.size(), 0.0);
  for (int64_t row = 0; row < s.rows; ++row) {
    const double *x_row = s.x.data() + row * s.width, *dy_row = dy.data() + row * s.width;
    const double r = inverse_root(x_row, s.width, call.attributes.number("epsilon"));
    double mean_gx = 0;
    for (size_t i = 0; i < s.gamma.size(); ++i) {
      mean_gx += dy_row[i] * s.gamma[i] * x_row[i] * r / static_cast<double>(s.width);
      dgamma[i] += dy_row[i] * x_row[i] * r;
    }
    for (size_t i = 0; i < s.gamma.size(); ++i) dx.push_back(r * (dy_row[i] * s.gamma[i] - x_row[i] * r * mean_gx));
  }
  store(call, Out::kDx, dx);
  if (call.outs[Out::kDgamma].data) store(call, Out::kDgamma, dgamma);
}

}  // namespace kintsugi::kernels::reference

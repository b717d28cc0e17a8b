#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

namespace {

// 1 / sqrt(mean of squares + epsilon) of one row.
double inverse_root(const double* x, int64_t n, double epsilon) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  return 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
}

}  // namespace

void rms_norm(const KernelCall& call) {
  const View& x_view = call.ins[NormIn::kX];
  const std::vector<double> x = load(x_view), gamma = load(call.ins[NormIn::kGamma]);  // [... embed], [embed]
  const int64_t n = width(x_view.shape());
  std::vector<double> y;
  for (int64_t row = 0; row < rows(x_view.shape()); ++row) {
    const double* x_row = x.data() + row * n;
    const double r = inverse_root(x_row, n, call.attributes.number("epsilon"));
    for (size_t i = 0; i < gamma.size(); ++i) y.push_back(x_row[i] * r * gamma[i]);
  }
  store(call, 0, y);
}

// With xhat = x * r and g = dy * gamma: dx = r * (g - xhat * mean of (g * xhat)).
void rms_norm_grad(const KernelCall& call) {
  using In = NormGradIn;
  using Out = NormGradOut;
  const std::vector<double> x = load(call.ins[In::kX]), gamma = load(call.ins[In::kGamma]),
                            dy = load(call.ins[In::kDy]);
  const int64_t n = width(call.ins[In::kX].shape());
  std::vector<double> dx, dgamma(gamma.size(), 0.0);
  for (int64_t row = 0; row < rows(call.ins[In::kX].shape()); ++row) {
    const double *x_row = x.data() + row * n, *dy_row = dy.data() + row * n;
    const double r = inverse_root(x_row, n, call.attributes.number("epsilon"));
    double mean_gx = 0;
    for (size_t i = 0; i < gamma.size(); ++i) {
      mean_gx += dy_row[i] * gamma[i] * x_row[i] * r / static_cast<double>(n);
      dgamma[i] += dy_row[i] * x_row[i] * r;
    }
    for (size_t i = 0; i < gamma.size(); ++i) dx.push_back(r * (dy_row[i] * gamma[i] - x_row[i] * r * mean_gx));
  }
  store(call, Out::kDx, dx);
  store(call, Out::kDgamma, dgamma);
}

}  // namespace kintsugi::kernels::reference

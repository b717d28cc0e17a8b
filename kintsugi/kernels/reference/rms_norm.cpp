#include <cmath>

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
  const std::vector<double> x = load(call.ins[0]), gamma = load(call.ins[1]);  // [... embed], [embed]
  const int64_t n = width(call.ins[0].shape());
  std::vector<double> y;
  for (int64_t row = 0; row < rows(call.ins[0].shape()); ++row) {
    const double* x_row = x.data() + row * n;
    const double r = inverse_root(x_row, n, call.attributes.number("epsilon"));
    for (size_t i = 0; i < gamma.size(); ++i) y.push_back(x_row[i] * r * gamma[i]);
  }
  store(call, 0, y);
}

// With xhat = x * r and g = dy * gamma: dx = r * (g - xhat * mean of (g * xhat)).
void rms_norm_grad(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]), gamma = load(call.ins[1]), dy = load(call.ins[2]);
  const int64_t n = width(call.ins[0].shape());
  std::vector<double> dx, dgamma(gamma.size(), 0.0);
  for (int64_t row = 0; row < rows(call.ins[0].shape()); ++row) {
    const double *x_row = x.data() + row * n, *dy_row = dy.data() + row * n;
    const double r = inverse_root(x_row, n, call.attributes.number("epsilon"));
    double mean_gx = 0;
    for (size_t i = 0; i < gamma.size(); ++i) {
      mean_gx += dy_row[i] * gamma[i] * x_row[i] * r / static_cast<double>(n);
      dgamma[i] += dy_row[i] * x_row[i] * r;
    }
    for (size_t i = 0; i < gamma.size(); ++i) dx.push_back(r * (dy_row[i] * gamma[i] - x_row[i] * r * mean_gx));
  }
  store(call, 0, dx);
  store(call, 1, dgamma);
}

}  // namespace kintsugi::kernels::reference

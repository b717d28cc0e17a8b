#include <cmath>
#include <limits>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"
#include "kintsugi/kernels/reference/window_positions.h"

namespace kintsugi::kernels::reference {
namespace {

// Calls f(element of y, elements of x covered by its window, in order) for each element of y.
template <typename F>
void for_each_window(const KernelCall& call, const Shape& x, const Shape& y, const F& f) {
  const WindowPositions p = window_positions(call, x, y);
  std::vector<size_t> covered;
  for (int64_t n = 0; n < p.samples; ++n)
    for (int64_t o = 0; o < p.outputs; ++o)
      for (int64_t c = 0; c < p.x_channels; ++c) {
        covered.clear();
        for (int64_t k = 0; k < p.windows; ++k)
          if (const int64_t i = p.input[static_cast<size_t>(o * p.windows + k)]; i >= 0)
            covered.push_back(static_cast<size_t>(p.x(n, i) + c));
        f(static_cast<size_t>(p.y(n, o) + c), covered, p.windows);
      }
}

double divisor(const KernelCall& call, const std::vector<size_t>& covered, int64_t window) {
  return call.attributes.integer_or("exclude_padding", 0) ? static_cast<double>(std::max<size_t>(covered.size(), 1))
                                                          : static_cast<double>(window);
}

// The first maximum; NaN compares larger than any number.
size_t largest(const std::vector<double>& x, const std::vector<size_t>& covered) {
  size_t best = covered[0];
  for (size_t i : covered)
    if (!std::isnan(x[best]) && (std::isnan(x[i]) || x[i] > x[best])) best = i;
  return best;
}

}  // namespace

void max_pool(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);
  std::vector<double> y(static_cast<size_t>(call.outs[0].elements()));
  for_each_window(call, call.ins[0].shape(), call.outs[0].shape(),
                  [&](size_t at, const std::vector<size_t>& covered, int64_t) {
                    y[at] = covered.empty() ? -std::numeric_limits<double>::infinity() : x[largest(x, covered)];
                  });
  store(call, 0, y);
}

void max_pool_grad(const KernelCall& call) {
  const View& dy_view = call.ins[WindowGradIn::kDy];
  const std::vector<double> x = load(call.ins[WindowGradIn::kX]), dy = load(dy_view);
  std::vector<double> dx(x.size(), 0.0);
  for_each_window(call, call.outs[0].shape(), dy_view.shape(),
                  [&](size_t at, const std::vector<size_t>& covered, int64_t) {
                    if (!covered.empty()) dx[largest(x, covered)] += dy[at];
                  });
  store(call, 0, dx);
}

void average_pool(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);
  std::vector<double> y(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_each_window(call, call.ins[0].shape(), call.outs[0].shape(),
                  [&](size_t at, const std::vector<size_t>& covered, int64_t window) {
                    for (size_t i : covered) y[at] += x[i] / divisor(call, covered, window);
                  });
  store(call, 0, y);
}

void average_pool_grad(const KernelCall& call) {
  const std::vector<double> dy = load(call.ins[0]);
  std::vector<double> dx(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_each_window(call, call.outs[0].shape(), call.ins[0].shape(),
                  [&](size_t at, const std::vector<size_t>& covered, int64_t window) {
                    for (size_t i : covered) dx[i] += dy[at] / divisor(call, covered, window);
                  });
  store(call, 0, dx);
}

}  // namespace kintsugi::kernels::reference

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"
#include "kintsugi/kernels/reference/window_positions.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::reference {
namespace {

// Calls f(element of x, element of w, element of y) for each product of a convolution. w: [kernel... channels filters]
template <typename F>
void for_each_product(const KernelCall& call, const Shape& x, const Shape& y, const F& f) {
  const WindowPositions p = window_positions(call, x, y);
  const int64_t groups = call.attributes.integer_or("groups", 1), channels = p.x_channels / groups,
                filters = p.y_channels / groups;
  for (int64_t n = 0; n < p.samples; ++n)
    for (int64_t o = 0; o < p.outputs; ++o)
      for (int64_t k = 0; k < p.windows; ++k) {
        const int64_t i = p.input[static_cast<size_t>(o * p.windows + k)];
        if (i < 0) continue;
        for (int64_t g = 0; g < groups; ++g)
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t j = 0; j < filters; ++j)
              f(static_cast<size_t>(p.x(n, i) + g * channels + c),
                static_cast<size_t>((k * channels + c) * p.y_channels + g * filters + j),
                static_cast<size_t>(p.y(n, o) + g * filters + j));
      }
}

std::vector<double> zeros(const View& y) {
  return std::vector<double>(static_cast<size_t>(y.elements()), 0.0);
}

// Replaces the elements of y that the call does not compute by those that another call has.
void keep_others(const KernelCall& call, std::vector<double>& y) {
  const std::optional<tensor::OutputPart> part = tensor::output_part(call.attributes);
  if (!part) return;
  const std::vector<double> others = load(call.outs[0]);
  const Shape& shape = call.outs[0].shape();
  const auto axis = static_cast<size_t>(shape.find(part->dim));
  const auto [first, second] = part->ranges(shape[axis].size);
  const auto is_in = [](int64_t at, const std::array<int64_t, 2>& range) { return at >= range[0] && at < range[1]; };
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) / shape.stride(axis) % shape[axis].size;
    if (!is_in(at, first) && !is_in(at, second)) y[i] = others[i];
  }
}

}  // namespace

void convolution(const KernelCall& call) {
  const View& x_view = call.ins[ConvolutionIn::kX];
  const std::vector<double> x = load(x_view), w = load(call.ins[ConvolutionIn::kW]);
  std::vector<double> y = zeros(call.outs[0]);
  for_each_product(call, x_view.shape(), call.outs[0].shape(),
                   [&](size_t xi, size_t wi, size_t yi) { y[yi] += x[xi] * w[wi]; });
  keep_others(call, y);
  store(call, 0, y);
}

void convolution_grad_input(const KernelCall& call) {
  const View& dy_view = call.ins[ConvolutionGradInputIn::kDy];
  const std::vector<double> dy = load(dy_view), w = load(call.ins[ConvolutionGradInputIn::kW]);
  std::vector<double> dx = zeros(call.outs[0]);
  for_each_product(call, call.outs[0].shape(), dy_view.shape(),
                   [&](size_t xi, size_t wi, size_t yi) { dx[xi] += dy[yi] * w[wi]; });
  store(call, 0, dx);
}

void transposed_convolution(const KernelCall& call) {
  convolution_grad_input(call);
}

void convolution_grad_weight(const KernelCall& call) {
  const View &x_view = call.ins[WindowGradIn::kX], &dy_view = call.ins[WindowGradIn::kDy];
  const std::vector<double> x = load(x_view), dy = load(dy_view);
  std::vector<double> dw = zeros(call.outs[0]);
  for_each_product(call, x_view.shape(), dy_view.shape(),
                   [&](size_t xi, size_t wi, size_t yi) { dw[wi] += x[xi] * dy[yi]; });
  store(call, 0, dw);
}

}  // namespace kintsugi::kernels::reference

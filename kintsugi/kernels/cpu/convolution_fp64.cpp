// Convolutions in fp64 as matmuls: the inputs of some positions of the output are gathered into the rows of a matrix,
// with zeros outside the images.
#include <algorithm>
#include <numeric>

#include "kintsugi/kernels/cpu/gemm_fp64.h"
#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/reference/window_positions.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::cpu {
namespace {

using base::Range;
using reference::WindowPositions;

// Of the images that are gathered: for each of `rows` positions of a sample, the positions that a window reads, or -1.
struct Gather {
  const double* from = nullptr;
  int64_t rows = 0, windows = 0, positions = 0, channels = 0;  // of a sample; channels of all groups
  std::vector<int64_t> table = {};                             // [rows windows]

  // to: [rows.size(), windows, count], of channels first to first + count. Rows count across samples.
  void operator()(Range some, int64_t first, int64_t count, base::ThreadTeam& team, std::vector<double>& to) const {
    to.resize(static_cast<size_t>(some.size() * windows * count));
    team.for_shares(some.size(), 16, [&](Range mine, int) {
      double* out = to.data() + mine.begin * windows * count;
      for (int64_t row = some.begin + mine.begin; row < some.begin + mine.end; ++row)
        for (int64_t k = 0; k < windows; ++k, out += count) {
          const int64_t at = table[static_cast<size_t>(row % rows * windows + k)];
          if (at < 0) {
            std::fill_n(out, count, 0.0);
          } else {
            std::copy_n(from + (row / rows * positions + at) * channels + first, count, out);
          }
        }
    });
  }
};

// Rows of a matrix of `width` columns that take some 4 MiB. Depends on no number of threads, so neither do bits.
int64_t rows_at_once(int64_t width) {
  return std::max<int64_t>(64, (int64_t{1} << 19) / std::max<int64_t>(width, 1));
}

// Calls f(rows) for parts of `all` of that many rows.
template <typename F>
void in_parts(Range all, int64_t width, const F& f) {
  for (int64_t begin = all.begin; begin < all.end; begin += rows_at_once(width))
    f(Range{begin, std::min(all.end, begin + rows_at_once(width))});
}

// The same for the rows that the call computes.
template <typename F>
void for_rows(const KernelCall& call, const WindowPositions& p, int64_t width, const F& f) {
  const std::optional<tensor::OutputPart> part = tensor::output_part(call.attributes);
  if (!part) return in_parts({0, p.samples * p.outputs}, width, f);
  const int64_t length = call.outs[0].size(part->dim), inner = p.outputs / length;
  for (int64_t n = 0; n < p.samples; ++n)
    for (const auto& [begin, end] : part->ranges(length))
      in_parts({n * p.outputs + begin * inner, n * p.outputs + end * inner}, width, f);
}

const double* elements(const tensor::View& x) {
  return reinterpret_cast<const double*>(x.data);
}
double* elements_of(const tensor::View& x) {
  return reinterpret_cast<double*>(x.data);
}

int64_t groups_of(const KernelCall& call) {
  return call.attributes.integer_or("groups", 1);
}

}  // namespace

bool convolution_fp64_takes(const Operands& o) {
  const auto fits = [&](const tensor::Type& type) {
    return type.dtype == tensor::DType::f64 && type.shape.rank() > 2 && type.shape.elements() > 0;
  };
  // Groups of a few channels, as of a depthwise convolution, make no matmul.
  constexpr int64_t kFewestChannels = 4;
  const auto many = [&](const tensor::Type& type) {
    return type.shape[type.shape.rank() - 1].size >= kFewestChannels * o.attributes.integer_or("groups", 1);
  };
  if (!fits(o.ins[0]) || !fits(o.ins[1]) || !fits(o.outs[0])) return false;
  return o.attributes.integer_or("groups", 1) == 1 || (many(o.ins[0]) && many(o.ins[1]) && many(o.outs[0]));
}

void convolution_fp64(const KernelCall& call) {
  const tensor::View &x = call.ins[ConvolutionIn::kX], &w = call.ins[ConvolutionIn::kW], &y = call.outs[0];
  const WindowPositions p = reference::window_positions(call, x.shape(), y.shape());
  const int64_t groups = groups_of(call), channels = p.x_channels / groups, filters = p.y_channels / groups;
  const Gather gather = {elements(x), p.outputs, p.windows, p.inputs, p.x_channels, p.input};
  const int64_t width = p.windows * channels;
  std::vector<double> columns;
  for_rows(call, p, width, [&](Range rows) {
    for (int64_t g = 0; g < groups; ++g) {
      gather(rows, g * channels, channels, call.team, columns);
      multiply({.m = rows.size(),
                .n = filters,
                .k = width,
                .a = columns.data(),
                .a_row = width,
                .a_column = 1,
                .b = elements(w) + g * filters,
                .b_row = p.y_channels,
                .b_column = 1,
                .c = elements_of(y) + rows.begin * p.y_channels + g * filters,
                .c_row = p.y_channels,
                .accumulate = call.accumulates(0)},
               call.team);
    }
  });
}

void convolution_fp64_grad_input(const KernelCall& call) {
  const tensor::View &dy = call.ins[ConvolutionGradInputIn::kDy], &w = call.ins[ConvolutionGradInputIn::kW],
                     &dx = call.outs[0];
  const WindowPositions p = reference::window_positions(call, dx.shape(), dy.shape());
  const int64_t groups = groups_of(call), channels = p.x_channels / groups, filters = p.y_channels / groups;
  // At most one output reads an input at a given position of its window.
  Gather gather = {elements(dy), p.inputs, p.windows, p.outputs, p.y_channels, {}};
  gather.table.assign(static_cast<size_t>(p.inputs * p.windows), -1);
  for (int64_t o = 0; o < p.outputs; ++o)
    for (int64_t k = 0; k < p.windows; ++k)
      if (const int64_t i = p.input[static_cast<size_t>(o * p.windows + k)]; i >= 0)
        gather.table[static_cast<size_t>(i * p.windows + k)] = o;
  const int64_t width = p.windows * filters;
  std::vector<double> columns, turned(static_cast<size_t>(width * channels));  // of a group: [windows filters channels]
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t k = 0; k < p.windows; ++k)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t j = 0; j < filters; ++j)
          turned[static_cast<size_t>((k * filters + j) * channels + c)] =
              elements(w)[(k * channels + c) * p.y_channels + g * filters + j];
    in_parts({0, p.samples * p.inputs}, width, [&](Range rows) {
      gather(rows, g * filters, filters, call.team, columns);
      multiply({.m = rows.size(),
                .n = channels,
                .k = width,
                .a = columns.data(),
                .a_row = width,
                .a_column = 1,
                .b = turned.data(),
                .b_row = channels,
                .b_column = 1,
                .c = elements_of(dx) + rows.begin * p.x_channels + g * channels,
                .c_row = p.x_channels,
                .accumulate = call.accumulates(0)},
               call.team);
    });
  }
}

void convolution_fp64_grad_weight(const KernelCall& call) {
  const tensor::View &x = call.ins[WindowGradIn::kX], &dy = call.ins[WindowGradIn::kDy], &dw = call.outs[0];
  const WindowPositions p = reference::window_positions(call, x.shape(), dy.shape());
  const int64_t groups = groups_of(call), channels = p.x_channels / groups, filters = p.y_channels / groups;
  const Gather gather = {elements(x), p.outputs, p.windows, p.inputs, p.x_channels, p.input};
  const int64_t width = p.windows * channels;
  std::vector<double> columns;
  in_parts({0, p.samples * p.outputs}, width, [&](Range rows) {
    for (int64_t g = 0; g < groups; ++g) {
      gather(rows, g * channels, channels, call.team, columns);
      multiply({.m = width,
                .n = filters,
                .k = rows.size(),
                .a = columns.data(),
                .a_row = 1,
                .a_column = width,
                .b = elements(dy) + rows.begin * p.y_channels + g * filters,
                .b_row = p.y_channels,
                .b_column = 1,
                .c = elements_of(dw) + g * filters,
                .c_row = p.y_channels,
                .accumulate = rows.begin > 0 || call.accumulates(0)},
               call.team);
    }
  });
}

}  // namespace kintsugi::kernels::cpu

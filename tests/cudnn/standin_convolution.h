// Checks the descriptors of convolutions in the cuDNN stand-in, and computes them in fp64.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/cudnn/standin_graph.h"

namespace kintsugi::tests::cudnn {

// Of a convolution: its windows, and the operands x, w and y, one of which it computes.
struct Convolution {
  const Descriptor *windows, *x, *w, *y;

  std::vector<int64_t> list(int name) const { return windows->list<int64_t>(name); }
};
inline std::optional<Convolution> convolution_of(const Descriptor& o) {
  switch (o.kind) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return Convolution{o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y)};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return Convolution{o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return Convolution{o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
                         o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)};
    default:
      return std::nullopt;
  }
}

// Calls f(element of x, of w, of y) for each product of a convolution. x: [samples channels in...], w: [filters
// channels/groups kernel...], y: [samples filters out...]
template <typename F>
inline void each_product(const Convolution& c, const F& f) {
  const auto x = sizes_of(*c.x), w = sizes_of(*c.w), y = sizes_of(*c.y);
  const auto low = c.list(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), stride = c.list(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
             dilation = c.list(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const int64_t filters_of_group = w[0] / (x[1] / w[1]);
  each(y, [&](const std::vector<int64_t>& out, int64_t to) {
    std::vector<int64_t> taps = w;
    taps[0] = 1;
    each(taps, [&](const std::vector<int64_t>& tap, int64_t k) {
      int64_t from = out[0] * x[1] + out[1] / filters_of_group * w[1] + tap[1];
      for (size_t d = 2; d < x.size(); ++d) {
        const int64_t at = out[d] * stride[d - 2] - low[d - 2] + tap[d] * dilation[d - 2];
        if (at < 0 || at >= x[d]) return;
        from = from * x[d] + at;
      }
      f(static_cast<size_t>(from), static_cast<size_t>(out[1] * elements(taps) + k), static_cast<size_t>(to));
    });
  });
}

// The operand that it computes, of the two others in the order of operands_of().
inline Values convolve(const Descriptor& operation, const Values& first, const Values& second) {
  const Convolution c = *convolution_of(operation);
  const Descriptor& out = *operation.part(operands_of(operation)->outs[0]);
  Values made = {sizes_of(out), std::vector<double>(static_cast<size_t>(elements(sizes_of(out))))};
  each_product(c, [&](size_t x, size_t w, size_t y) {
    if (&out == c.y) made.at[y] += first.at[x] * second.at[w];
    if (&out == c.x) made.at[x] += first.at[y] * second.at[w];
    if (&out == c.w) made.at[w] += first.at[x] * second.at[y];
  });
  return made;
}

// Checks the rules of a convolution; empty if it obeys them.
inline std::string broken_convolution_rule(const Convolution& c) {
  if (c.windows == nullptr || c.x == nullptr || c.w == nullptr || c.y == nullptr) return "a convolution without a part";
  if (!c.windows->finished) return "windows that are not finished";
  if (c.windows->value<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE, -1) != CUDNN_CROSS_CORRELATION)
    return "a convolution that reverses its windows";
  if (c.windows->value<int>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, -1) != CUDNN_DATA_FLOAT) return "sums that are not fp32";
  const auto x = sizes_of(*c.x), w = sizes_of(*c.w), y = sizes_of(*c.y);
  const auto dims = static_cast<size_t>(c.windows->value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  const auto low = c.list(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), high = c.list(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
             stride = c.list(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
             dilation = c.list(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (dims < 2 || dims > 3) return fmt::format("a convolution of {} dims", dims);
  for (const auto* list : {&low, &high, &stride, &dilation})
    if (list->size() != dims) return "a list of windows of another length";
  for (const Descriptor* tensor : {c.x, c.w, c.y}) {
    const auto sizes = sizes_of(*tensor), strides = strides_of(*tensor);
    if (sizes.size() != dims + 2 || strides.size() != dims + 2) return "a tensor with other dims than its windows";
    int64_t stride_of_dim = sizes[1];
    bool last = strides[1] == 1;  // channels last, without gaps
    for (size_t d = dims + 2; d-- > 2;) last &= strides[d] == stride_of_dim, stride_of_dim *= sizes[d];
    if (!last || strides[0] != stride_of_dim) return "a tensor whose channels are not adjacent";
    if (!dtype_of(type_of(*tensor))) return fmt::format("a tensor of type {}", type_of(*tensor));
  }
  const bool of_weight = !is_virtual(*c.w) && type_of(*c.w) == CUDNN_DATA_FLOAT;
  if (type_of(*c.x) != type_of(*c.y) || (type_of(*c.w) != type_of(*c.x) && !of_weight))
    return "operands of several types";
  if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0) return "sizes that do not match";
  for (size_t d = 0; d < dims; ++d) {
    if (low[d] < 0 || high[d] < 0 || stride[d] < 1 || dilation[d] < 1) return "windows below their least size";
    const int64_t room = x[d + 2] + low[d] + high[d] - (w[d + 2] - 1) * dilation[d] - 1;
    if (room < 0 || room / stride[d] + 1 != y[d + 2])
      return fmt::format("{} positions of y where {} are computed", y[d + 2], room < 0 ? 0 : room / stride[d] + 1);
  }
  return "";
}

// Whether a gradient of 16-bit weights is stored in fp32.
inline bool widens_weights(const Descriptor& graph) {
  for (const Descriptor* operation : graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    if (const auto c = convolution_of(*operation); c && type_of(*c->w) != type_of(*c->x)) return true;
  return false;
}

}  // namespace kintsugi::tests::cudnn

#include "kintsugi/kernels/cpu/convolution_library.h"

#include <algorithm>
#include <dnnl.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/cpu/library_calls.h"
#include "kintsugi/kernels/cpu/library_thread.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::cpu {
namespace {

using dnnl::memory;
using Dims = memory::dims;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

// [samples spatial... channels] in oneDNN's order of dims: samples, channels, spatial.
memory::desc images(int64_t samples, int64_t channels, const std::array<int64_t, kMostWindows>& spatial, size_t dims) {
  Dims sizes = {samples, channels}, strides = {0, 1};
  sizes.insert(sizes.end(), spatial.begin(), spatial.begin() + static_cast<std::ptrdiff_t>(dims));
  strides.resize(sizes.size());
  int64_t stride = channels;
  for (size_t i = dims; i-- > 0;) strides[i + 2] = stride, stride *= spatial[i];
  strides[0] = stride;
  return {sizes, memory::data_type::f32, strides};
}

// filters, channels, kernel; preceded by groups.
Dims weight_sizes(const ConvolutionSizes& s) {
  Dims sizes = {s.filters / s.groups, s.channels / s.groups};
  if (s.groups > 1) sizes.insert(sizes.begin(), s.groups);
  sizes.insert(sizes.end(), s.kernel.begin(), s.kernel.begin() + static_cast<std::ptrdiff_t>(s.windows));
  return sizes;
}

// [kernel... channels filters], where the filters of a group are contiguous.
memory::desc plain_weights(const ConvolutionSizes& s) {
  Dims sizes = weight_sizes(s), strides = {1, s.filters};
  if (s.groups > 1) strides.insert(strides.begin(), s.filters / s.groups);
  strides.resize(sizes.size());
  int64_t stride = s.filters * (s.channels / s.groups);
  for (size_t i = s.windows; i-- > 0;) strides[strides.size() - s.windows + i] = stride, stride *= s.kernel[i];
  return {sizes, memory::data_type::f32, strides};
}

// The arguments of a primitive.
struct Description {
  memory::desc x, weights, y;
  Dims strides, dilates, before, after;
};

Description describe(const ConvolutionSizes& s, const memory::desc* packed) {
  Description d = {
      .x = images(s.samples, s.channels, s.in, s.windows),
      .weights = packed ? *packed : memory::desc(weight_sizes(s), memory::data_type::f32, memory::format_tag::any),
      .y = images(s.samples, s.filters, s.out, s.windows),
      .strides = {},
      .dilates = {},
      .before = {},
      .after = {}};
  for (size_t i = 0; i < s.windows; ++i) {
    d.strides.push_back(s.stride[i]);
    d.dilates.push_back(s.dilation[i] - 1);
    d.before.push_back(s.low[i]);
    // Padding after x for the last window. Up to a stride minus one positions of x may remain unused.
    const int64_t beyond = (s.out[i] - 1) * s.stride[i] + s.dilation[i] * (s.kernel[i] - 1) + 1 - s.low[i] - s.in[i];
    d.after.push_back(beyond < 0 && -beyond < s.stride[i] ? 0 : beyond);
  }
  return d;
}

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

#if DNNL_VERSION_MAJOR >= 3
auto forward_of(const Description& d) {
  return dnnl::convolution_forward::primitive_desc(engine(), dnnl::prop_kind::forward_training, kDirect, d.x, d.weights,
                                                   d.y, d.strides, d.dilates, d.before, d.after, attributes());
}
auto input_of(const Description& d) {
  return dnnl::convolution_backward_data::primitive_desc(engine(), kDirect, d.x, d.weights, d.y, d.strides, d.dilates,
                                                         d.before, d.after, forward_of(d), attributes());
}
auto weight_of(const Description& d) {
  return dnnl::convolution_backward_weights::primitive_desc(engine(), kDirect, d.x, d.weights, d.y, d.strides,
                                                            d.dilates, d.before, d.after, forward_of(d), attributes());
}
#else
auto forward_of(const Description& d) {
  return dnnl::convolution_forward::primitive_desc(
      {dnnl::prop_kind::forward_training, kDirect, d.x, d.weights, d.y, d.strides, d.dilates, d.before, d.after},
      attributes(), engine());
}
auto input_of(const Description& d) {
  return dnnl::convolution_backward_data::primitive_desc(
      {kDirect, d.x, d.weights, d.y, d.strides, d.dilates, d.before, d.after}, attributes(), engine(), forward_of(d));
}
auto weight_of(const Description& d) {
  return dnnl::convolution_backward_weights::primitive_desc(
      {kDirect, d.x, d.weights, d.y, d.strides, d.dilates, d.before, d.after}, attributes(), engine(), forward_of(d));
}
#endif

class Prepared : public Convolution {
 public:
  Prepared(const ConvolutionSizes& s, const Prepared* packed_like) : sizes(s), like(packed_like) {
    const Description d = describe(s, packed_like ? &packed_like->packed_ : nullptr);
    x_ = d.x, y_ = d.y, plain_ = plain_weights(s);
    switch (s.pass) {
      case ConvolutionPass::forward: {
        const auto pd = forward_of(d);
        keep(dnnl::convolution_forward(pd), pd.weights_desc(), pd.scratchpad_desc());
        names_ = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
        break;
      }
      case ConvolutionPass::input: {
        const auto pd = input_of(d);
        keep(dnnl::convolution_backward_data(pd), pd.weights_desc(), pd.scratchpad_desc());
        names_ = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
        break;
      }
      case ConvolutionPass::weight: {
        const auto pd = weight_of(d);
        keep(dnnl::convolution_backward_weights(pd), pd.diff_weights_desc(), pd.scratchpad_desc());
        names_ = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
        break;
      }
    }
    pack_ = dnnl::reorder({engine(), plain_, engine(), packed_});
    unpack_ = dnnl::reorder({engine(), packed_, engine(), plain_});
  }

  void pack(const float* weights, float* to) const override {
    reorder(pack_, plain_, const_cast<float*>(weights), packed_, to);
  }
  void unpack(const float* from, float* to) const override {
    reorder(unpack_, packed_, const_cast<float*>(from), plain_, to);
  }
  void run(float* x, float* weights, float* y, std::byte* scratch) const override {
    stay_on_this_thread();
    primitive_.execute(stream(), {{names_[0], memory(x_, engine(), x)},
                                  {names_[1], memory(packed_, engine(), weights)},
                                  {names_[2], memory(y_, engine(), y)},
                                  {DNNL_ARG_SCRATCHPAD, memory(scratch_, engine(), scratch)}});
  }

  const ConvolutionSizes sizes;
  const Prepared* const like;

 private:
  void keep(dnnl::primitive primitive, const memory::desc& weights, const memory::desc& space) {
    primitive_ = std::move(primitive);
    packed_ = weights;
    scratch_ = space;
    packed = static_cast<int64_t>((packed_.get_size() + sizeof(float) - 1) / sizeof(float));
    scratch = static_cast<int64_t>(scratch_.get_size());
  }

  static void reorder(const dnnl::reorder& reorder, const memory::desc& from_desc, float* from,
                      const memory::desc& to_desc, float* to) {
    stay_on_this_thread();
    reorder.execute(stream(),
                    {{DNNL_ARG_FROM, memory(from_desc, engine(), from)}, {DNNL_ARG_TO, memory(to_desc, engine(), to)}});
  }

  memory::desc x_, y_, plain_, packed_, scratch_;
  dnnl::primitive primitive_;
  dnnl::reorder pack_, unpack_;
  std::array<int, 3> names_ = {};
};

const Prepared& prepared(const ConvolutionSizes& sizes, const Prepared* like) {
  static std::mutex mutex;
  static std::list<Prepared> all;
  const std::lock_guard guard(mutex);
  for (const Prepared& p : all)
    if (p.like == like && p.sizes == sizes) return p;
  stay_on_this_thread();
  const auto lock = lock_first_call();
  require_memory();
  try {
    return all.emplace_back(sizes, like);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory)
      throw base::UserError("convolution", "oneDNN cannot allocate memory; a smaller train.micro_batch needs less");
    throw base::InternalError("convolution", "oneDNN refused a convolution of {} to {} channels: {}", sizes.channels,
                              sizes.filters, e.what());
  }
}

int64_t product(const std::array<int64_t, kMostWindows>& sizes, size_t count) {
  int64_t n = 1;
  for (size_t i = 0; i < count; ++i) n *= sizes[i];
  return n;
}

}  // namespace

int64_t ConvolutionSizes::x_elements() const {
  return channels * product(in, windows);
}
int64_t ConvolutionSizes::y_elements() const {
  return filters * product(out, windows);
}
int64_t ConvolutionSizes::weights() const {
  return filters * (channels / groups) * product(kernel, windows);
}

ConvolutionRows rows_of(const ConvolutionSizes& s, base::Range y) {
  const int64_t extent = (s.kernel[0] - 1) * s.dilation[0] + 1, first = y.begin * s.stride[0] - s.low[0],
                last = (y.end - 1) * s.stride[0] - s.low[0] + extent;
  const int64_t begin = std::clamp<int64_t>(first, 0, s.in[0] - 1);
  return {.x = {begin, std::clamp(last, begin + 1, s.in[0])}, .y = y};
}

ConvolutionSizes of_rows(ConvolutionSizes s, const ConvolutionRows& rows) {
  s.low[0] -= rows.y.begin * s.stride[0] - rows.x.begin;
  s.in[0] = rows.x.size(), s.out[0] = rows.y.size(), s.samples = 1;
  return s;
}

ConvolutionSizes convolution_sizes(ConvolutionPass pass, const tensor::Shape& x, const tensor::Shape& y,
                                   const tensor::Attributes& attributes) {
  ConvolutionSizes s = {.pass = pass,
                        .samples = x[0].size,
                        .channels = x[x.rank() - 1].size,
                        .filters = y[y.rank() - 1].size,
                        .groups = attributes.integer_or("groups", 1)};
  for (const auto& [dim, w] : tensor::windows_of(attributes)) {
    const size_t i = s.windows++;
    s.in[i] = x.size(dim), s.out[i] = y.size(dim);
    s.kernel[i] = w.kernel, s.stride[i] = w.stride, s.dilation[i] = w.dilation, s.low[i] = w.low;
  }
  return s;
}

const Convolution& library_convolution(const ConvolutionSizes& sizes) {
  return prepared(sizes, nullptr);
}

const Convolution& library_convolution(const ConvolutionSizes& sizes, const ConvolutionSizes& other) {
  const Prepared& first = prepared(other, nullptr);
  return sizes == other ? first : prepared(sizes, &first);
}

}  // namespace kintsugi::kernels::cpu

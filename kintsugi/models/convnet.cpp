#include "kintsugi/models/convnet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::models {
namespace {

using tensor::Attributes;
using tensor::Dim;

const Dim& last_dim(const Shape& shape) {
  return shape[shape.rank() - 1];
}

// He et al. 2015, section 2.2: preserves the variance, where ReLU halves it for a gain of 2.
double deviation_of(double gain, int64_t inputs) {
  return std::sqrt(gain / static_cast<double>(inputs));
}

// The alternate name of channels between adjacent convolutions.
std::string other_name(const std::string& name) {
  return name == "channel" ? "filter" : "channel";
}

// The attribute of a number per channel, or of one for all.
std::string list_of(const std::vector<double>& given, double standard) {
  return given.empty() ? fmt::format("{}", standard) : fmt::format("{}", fmt::join(given, " "));
}

// The fewest positions along each dim of an image for which all windows fit.
int64_t fewest_positions(const std::vector<NetLayer>& layers) {
  int64_t needed = 1;
  const auto pass = [&](const WindowSize& w) {
    needed = std::max<int64_t>(1, (needed - 1) * w.stride + w.kernel - 2 * w.padding);
  };
  for (const NetLayer& layer : layers | std::views::reverse)
    for (const NetOperation& operation : layer | std::views::reverse) {
      if (const auto* c = std::get_if<Convolve>(&operation)) pass(c->window);
      if (const auto* p = std::get_if<MaxPool>(&operation)) pass(p->window);
      if (const auto* r = std::get_if<Residual>(&operation))
        for (const Convolve& c : r->branch | std::views::reverse) pass(c.window);
      if (std::holds_alternative<Upward>(operation)) needed = (needed + 1) / 2;
    }
  return needed;
}

class NetBuilder {
 public:
  NetBuilder(Builder& b, int64_t fewest_positions)
      : b_(b), g_(b.graph()), fewest_positions_(fewest_positions), x_(images(b)) {}

  void add(const Convolve& c) { convolve(c, other_name(channels().name)); }

  void add(const MaxPool& p) { x_ = g_.op("max_pool", {x_}, windows_of(p.window, "max pool")); }

  // The branch begins and ends with the name of x's channels; channels between two of its convolutions have another
  // name, "filter" first.
  void add(const Residual& r) {
    const ValueId x = x_;
    const std::string stream = channels().name;
    std::string between = other_name(stream);
    int64_t stride = 1;
    for (size_t i = 0; i < r.branch.size(); ++i) {
      stride *= r.branch[i].window.stride;
      const bool last = i + 1 == r.branch.size();
      // Two adjacent convolutions must not have the same name on both sides.
      if (i > 0 && !last) between = between == "bottleneck" ? "filter" : "bottleneck";
      convolve(r.branch[i], last ? stream : between);
    }
    const ValueId y = x_;
    ValueId shortcut = x;
    if (g_.shape(x) != g_.shape(y)) {
      const std::string other = other_name(stream);
      x_ = x;
      convolve({.name = r.shortcut,
                .filters = last_dim(g_.shape(y)).size,
                .window = {.stride = stride},
                .norm = true,
                .act = Act::none},
               other);
      shortcut = g_.rename(x_, other, stream);
    }
    x_ = g_.op("relu", {g_.add({y, shortcut})});
  }

  void add(const GlobalMean&) {
    const Shape x = g_.shape(x_);
    const int64_t positions = x.elements() / (x[0].size * last_dim(x).size);
    const tensor::Type mean = {{x[0], last_dim(x)}, g_.type(x_).dtype};
    x_ = g_.scale(g_.sum_to(x_, mean), 1.0 / static_cast<double>(positions));
  }

  void add(const AdaptiveMean& a) {
    std::vector<Dim> dims = g_.shape(x_).dims();
    std::string whole;
    bool same = true;
    for (size_t i = 1; i + 1 < dims.size(); ++i) {
      same &= dims[i].size == a.size;
      dims[i].size = a.size;
    }
    if (same) return;
    for (size_t i = 1; i + 1 < dims.size(); ++i) {
      const std::string from = "from_" + dims[i].name;
      x_ = g_.rename(x_, dims[i].name, from);
      whole += (whole.empty() ? "" : " ") + dims[i].name + " " + from;
    }
    x_ = g_.make("adaptive_pool", {x_}, {{Shape(dims), g_.type(x_).dtype}}, {{"whole", whole}})[0];
  }

  void add(const ChannelNorm& n) { x_ = channel_norm(n.name, n.epsilon); }

  void add(const NextBlock& n) {
    const ValueId x = x_;
    const Dim stream = channels(), inner = {other_name(stream.name), stream.size};
    std::vector<Dim> w = kernel_dims(7);
    w.insert(w.end(), {{"group_channel", 1}, inner});
    Attributes attributes = windows_of({.kernel = 7, .padding = 3}, n.name);
    attributes.set("groups", stream.size);
    attributes.set("whole", stream.name + " " + inner.name + " group_channel");
    const ValueId depthwise =
        b_.weight(n.name + ".dwconv.weight", Shape(w), {Init::Kind::normal, kNextDeviation}, true);
    x_ = g_.add({g_.op("convolution", {x_, depthwise}, attributes), bias(n.name + ".dwconv", inner)});
    x_ = channel_norm(n.name + ".norm", kNextEpsilon);
    const Dim wide = {"ffn", 4 * stream.size};
    const std::string positions = positions_of(g_.shape(x_));
    x_ = b_.linear(x_, n.name + ".pwconv1", {inner, wide}, positions + " ffn", kNextDeviation, true);
    x_ = g_.op("gelu", {x_}, {{"form", "erf"}});
    x_ = b_.linear(x_, n.name + ".pwconv2", {wide, stream}, positions + " " + stream.name, kNextDeviation, true);
    const ValueId scale = b_.weight(n.name + ".layer_scale", {stream}, {Init::Kind::constant, 1e-6}, false);
    x_ = g_.op("channel_scale", {x_, scale});
    x_ = g_.add({x, b_.drop_path(x_, n.name, n.drop * b_.model().drop_path)});
  }

  void add(const Keep& k) {
    if (kept_.size() <= static_cast<size_t>(k.number)) kept_.resize(static_cast<size_t>(k.number) + 1, graph::kNone);
    kept_[static_cast<size_t>(k.number)] = x_;
  }

  void add(const Join& j) {
    const ValueId kept = kept_[static_cast<size_t>(j.number)];
    const std::string name = last_dim(g_.shape(kept)).name;
    const ValueId before = g_.rename(kept, name, "kept"), after = g_.rename(x_, channels().name, "made");
    x_ = g_.op("concatenate", {before, after}, {{"whole", "kept made " + name}});
  }

  void add(const Upward& u) {
    const Dim in = channels(), out = {other_name(in.name), u.filters};
    std::vector<Dim> w = kernel_dims(2);
    w.insert(w.end(), {out, in});
    const ValueId weight =
        b_.weight(u.name + ".weight", Shape(w), {Init::Kind::normal, deviation_of(1.0, in.size)}, true);
    Attributes attributes;
    std::vector<tensor::DimWindow> list;
    for (const Dim& d : spatial()) list.push_back({d.name, {.kernel = 2, .stride = 2}});
    tensor::set_windows(attributes, list);
    x_ = g_.add({g_.op("transposed_convolution", {x_, weight}, attributes), bias(u.name, out)});
  }

  void add(const Drop& d) { x_ = b_.dropout(x_, d.key); }

  void add(const Dense& d) {
    linear(d.name, {channels().name == "ffn" ? "embed" : "ffn", d.width}, 2.0);
    activate(d.act);
    if (d.drops) x_ = b_.dropout(x_, d.name);
  }

  ValueId head(const std::string& name, const Dim& out, double limit) {
    const config::Objective objective = config::objective(b_.model());
    if (objective == config::Objective::pixels || objective == config::Objective::fields) {
      convolve({.name = name, .filters = out.size, .act = Act::none}, out.name);
    } else {
      linear(name, out, 1.0);
    }
    if (limit > 0.0) x_ = g_.scale(g_.op("tanh", {x_}), limit);
    return x_;
  }

 private:
  static constexpr double kNextDeviation = 0.02, kNextEpsilon = 1e-6;

  const Dim& channels() const { return last_dim(g_.shape(x_)); }

  ValueId bias(const std::string& name, const Dim& out) { return b_.weight(name + ".bias", {out}, {}, false); }

  ValueId channel_norm(const std::string& name, double epsilon) {
    const Dim c = channels();
    const ValueId gamma = b_.weight(name + ".gamma", {c}, {Init::Kind::constant, 1.0}, false),
                  beta = b_.weight(name + ".beta", {c}, {}, false);
    return g_.op("layer_norm", {x_, gamma, beta}, {{"epsilon", epsilon}, {"whole", c.name}});
  }

  void activate(Act act) {
    if (act == Act::relu) x_ = g_.op("relu", {x_});
    if (act == Act::leaky_relu) x_ = g_.op("leaky_relu", {x_}, {{"slope", 0.3}});
    if (act == Act::gelu) x_ = g_.op("gelu", {x_}, {{"form", "erf"}});
  }

  static std::string positions_of(const Shape& x) {
    std::string names;
    for (size_t i = 0; i + 1 < x.rank(); ++i) names += (i ? " " : "") + x[i].name;
    return names;
  }

  std::vector<Dim> kernel_dims(int64_t kernel) const {
    std::vector<Dim> dims;
    for (const Dim& d : spatial()) dims.push_back({tensor::kernel_dim(d.name), kernel});
    return dims;
  }

  // To channels with that name.
  void convolve(const Convolve& c, const std::string& to) {
    const Dim in = channels(), out = {to, c.filters};
    std::vector<Dim> w = kernel_dims(c.window.kernel);
    int64_t inputs = in.size;
    for (const Dim& d : w) inputs *= d.size;
    w.insert(w.end(), {in, out});
    const Attributes windows = windows_of(c.window, c.name);
    const ValueId weight =
        b_.weight(c.name + ".weight", Shape(w), {Init::Kind::normal, deviation_of(2.0, inputs)}, true);
    x_ = g_.op("convolution", {x_, weight}, windows);
    if (!c.norm || c.bias_and_norm) x_ = g_.add({x_, bias(c.name, out)});
    if (c.norm) x_ = b_.batch_norm(x_, c.name + ".norm");
    activate(c.act);
  }

  // The dims with windows.
  std::vector<Dim> spatial() const {
    const std::vector<Dim>& dims = g_.shape(x_).dims();
    return {dims.begin() + 1, dims.end() - 1};
  }

  Attributes windows_of(const WindowSize& size, const std::string& name) const {
    const config::Model& m = b_.model();
    std::vector<tensor::DimWindow> list;
    for (const Dim& d : spatial()) {
      const tensor::Window w = {
          .kernel = size.kernel, .stride = size.stride, .low = size.padding, .high = size.padding};
      if (w.outputs(d.size) < 1)
        throw base::UserError(
            "model",
            "{}: the window of {} exceeds its input of {} {}{}; model.image_{} = {} is too small, the "
            "minimum is {}",
            name, size.kernel, d.name, d.size, size.padding > 0 ? fmt::format(" with padding of {}", size.padding) : "",
            d.name,
            d.name == "height"  ? m.image_height
            : d.name == "width" ? m.image_width
                                : m.image_depth,
            fewest_positions_);
      list.push_back({d.name, w});
    }
    Attributes attributes;
    tensor::set_windows(attributes, list);
    return attributes;
  }

  // Contracts all dims of a sample.
  void linear(const std::string& name, const Dim& out, double gain) {
    const Shape x = g_.shape(x_);
    std::vector<Dim> w(x.dims().begin() + 1, x.dims().end());
    int64_t inputs = 1;
    for (const Dim& d : w) inputs *= d.size;
    w.push_back(out);
    x_ = b_.linear(x_, name, Shape(w), "batch " + out.name, deviation_of(gain, inputs), true);
  }

  Builder& b_;
  Graph& g_;
  int64_t fewest_positions_;
  ValueId x_ = graph::kNone;
  std::vector<ValueId> kept_;
};

}  // namespace

ValueId images(Builder& b) {
  const config::Model& m = b.model();
  if (m.image_channels < 1 || m.image_height < 1 || m.image_width < 1)
    throw base::UserError("model",
                          "{} needs the size of its images: model.image_channels, image_height and image_width, or "
                          "data of images",
                          m.family);
  std::vector<Dim> dims = {b.batch(), {"channel", m.image_channels}};
  if (m.image_depth > 0) dims.push_back({"depth", m.image_depth});
  dims.insert(dims.end(), {{"height", m.image_height}, {"width", m.image_width}});
  const bool bytes = m.image_dtype == "uint8";
  const ValueId images = b.input("images", Shape(dims), bytes ? DType::u8 : DType::f32);
  return b.graph().op("pixels", {images},
                      {{"dtype", std::string(name_of(b.dtype()))},
                       {"mean", list_of(m.image_mean, bytes ? 0.5 : 0.0)},
                       {"deviation", list_of(m.image_deviation, bytes ? 0.5 : 1.0)}});
}

Trunk convnet(Builder& b, const std::vector<NetLayer>& layers, const std::string& head, double limit) {
  b.graph().layer = 0;
  NetBuilder net(b, fewest_positions(layers));
  for (size_t i = 0; i < layers.size(); ++i) {
    b.graph().layer = static_cast<int>(i);
    for (const NetOperation& operation : layers[i]) std::visit([&](const auto& o) { net.add(o); }, operation);
  }
  b.graph().layer = static_cast<int>(layers.size());
  const config::Objective objective = config::objective(b.model());
  const bool classes = objective != config::Objective::numbers && objective != config::Objective::fields;
  Trunk trunk;
  (classes ? trunk.classes : trunk.numbers) =
      net.head(head, {classes ? "class" : "target", b.model().outputs}, classes ? 0.0 : limit);
  return trunk;
}

}  // namespace kintsugi::models

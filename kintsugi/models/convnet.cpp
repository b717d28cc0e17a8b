#include "kintsugi/models/convnet.h"

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::models {
namespace {

using tensor::Attributes;
using tensor::Dim;

const Dim& last_dim(const Shape& shape) {
  return shape[shape.rank() - 1];
}

// He et al. 2015, section 2.2: the variance of an output is that of an input, halved by ReLU for a gain of 2.
double deviation_of(double gain, int64_t inputs) {
  return std::sqrt(gain / static_cast<double>(inputs));
}

class NetBuilder {
 public:
  explicit NetBuilder(Builder& b) : b_(b), g_(b.graph()) {
    const config::Model& m = b.model();
    if (m.image_channels < 1 || m.image_height < 1 || m.image_width < 1)
      throw base::UserError("model",
                            "{} needs the size of its images: model.image_channels, image_height and image_width, or "
                            "data of images",
                            m.family);
    const ValueId images = b.input(
        "images", {b.batch(), {"channel", m.image_channels}, {"height", m.image_height}, {"width", m.image_width}},
        DType::u8);
    x_ = g_.op("pixels", {images}, {{"dtype", std::string(name_of(b.dtype()))}, {"mean", "0.5"}, {"deviation", "0.5"}});
  }

  void add(const Convolve& c) { convolve(c, last_dim(g_.shape(x_)).name == "channel" ? "filter" : "channel"); }

  void add(const MaxPool& p) { x_ = g_.op("max_pool", {x_}, windows_of(p.window, "max pool")); }

  // The branch begins and ends with the name of x's channels; between two convolutions within it stands another name,
  // "filter" first.
  void add(const Residual& r) {
    const ValueId x = x_;
    const std::string stream = last_dim(g_.shape(x)).name;
    std::string between = stream == "channel" ? "filter" : "channel";
    int64_t stride = 1;
    for (size_t i = 0; i < r.branch.size(); ++i) {
      stride *= r.branch[i].window.stride;
      const bool last = i + 1 == r.branch.size();
      // Two convolutions in a row may not have the same name on both sides.
      if (i > 0 && !last) between = between == "bottleneck" ? "filter" : "bottleneck";
      convolve(r.branch[i], last ? stream : between);
    }
    const ValueId y = x_;
    ValueId shortcut = x;
    if (g_.shape(x) != g_.shape(y)) {
      const std::string other = stream == "channel" ? "filter" : "channel";
      x_ = x;
      convolve({.name = r.shortcut,
                .filters = last_dim(g_.shape(y)).size,
                .window = {.stride = stride},
                .norm = true,
                .active = false},
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

  void add(const Dense& d) {
    linear(d.name, {last_dim(g_.shape(x_)).name == "ffn" ? "embed" : "ffn", d.width}, 2.0);
    x_ = b_.dropout(g_.op("relu", {x_}), d.name);
  }

  ValueId head(const std::string& name, const Dim& out) {
    linear(name, out, 1.0);
    return x_;
  }

 private:
  // To channels of that name.
  void convolve(const Convolve& c, const std::string& to) {
    const Dim in = last_dim(g_.shape(x_)), out = {to, c.filters};
    std::vector<Dim> w;
    int64_t inputs = in.size;
    for (const Dim& d : spatial()) {
      w.push_back({tensor::kernel_dim(d.name), c.window.kernel});
      inputs *= c.window.kernel;
    }
    w.insert(w.end(), {in, out});
    const Attributes windows = windows_of(c.window, c.name);
    const ValueId weight =
        b_.weight(c.name + ".weight", Shape(w), {Init::Kind::normal, deviation_of(2.0, inputs)}, true);
    const ValueId y = g_.op("convolution", {x_, weight}, windows);
    x_ = c.norm ? b_.batch_norm(y, c.name + ".norm") : g_.add({y, b_.weight(c.name + ".bias", {out}, {}, false)});
    if (c.active) x_ = g_.op("relu", {x_});
  }

  // The dims with windows.
  std::vector<Dim> spatial() const {
    const std::vector<Dim>& dims = g_.shape(x_).dims();
    return {dims.begin() + 1, dims.end() - 1};
  }

  Attributes windows_of(const WindowSize& size, const std::string& name) const {
    std::vector<tensor::DimWindow> list;
    for (const Dim& d : spatial()) {
      const tensor::Window w = {
          .kernel = size.kernel, .stride = size.stride, .low = size.padding, .high = size.padding};
      if (w.outputs(d.size) < 1)
        throw base::UserError("model",
                              "{}: {} of the image is {} positions there, fewer than the {} of a window; "
                              "model.image_{} = {} is too small",
                              name, d.name, d.size + 2 * size.padding, size.kernel, d.name,
                              d.name == "height" ? b_.model().image_height : b_.model().image_width);
      list.push_back({d.name, w});
    }
    Attributes attributes;
    tensor::set_windows(attributes, list);
    return attributes;
  }

  // Sums over all dims of a sample.
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
  ValueId x_ = graph::kNone;
};

}  // namespace

Trunk convnet(Builder& b, const std::vector<NetLayer>& layers, const std::string& head) {
  b.graph().layer = 0;
  NetBuilder net(b);
  for (size_t i = 0; i < layers.size(); ++i) {
    b.graph().layer = static_cast<int>(i);
    for (const NetOperation& operation : layers[i]) std::visit([&](const auto& o) { net.add(o); }, operation);
  }
  b.graph().layer = static_cast<int>(layers.size());
  const bool classes = config::objective(b.model()) == config::Objective::classes;
  Trunk trunk;
  (classes ? trunk.classes : trunk.numbers) = net.head(head, {classes ? "class" : "target", b.model().outputs});
  return trunk;
}

}  // namespace kintsugi::models

// AlexNet for a single device (Krizhevsky 2014, "One weird trick", section 6), as in torchvision.
#include "kintsugi/models/convnet.h"
#include "kintsugi/models/image_family.h"

namespace kintsugi::models {
namespace {

const std::vector<NetLayer>& alexnet_layers() {
  const MaxPool pool = {{.kernel = 3, .stride = 2}};
  static const std::vector<NetLayer> layers = {
      {Convolve{"features.0", 64, {.kernel = 11, .stride = 4, .padding = 2}}, pool},
      {Convolve{"features.3", 192, {.kernel = 5, .padding = 2}}, pool},
      {Convolve{"features.6", 384, {.kernel = 3, .padding = 1}}},
      {Convolve{"features.8", 256, {.kernel = 3, .padding = 1}}},
      {Convolve{"features.10", 256, {.kernel = 3, .padding = 1}}, pool, AdaptiveMean{6}},
      {Drop{"classifier.0"}, Dense{"classifier.1", 4096}},
      {Dense{.name = "classifier.4", .width = 4096, .drops = false}},
  };
  return layers;
}

}  // namespace

Family alexnet() {
  return image_family({.name = "alexnet",
                       .about = "AlexNet: five convolutions and three dense layers, from images to a class or numbers",
                       .layers = static_cast<int64_t>(alexnet_layers().size()),
                       .build = [](Builder& b) { return convnet(b, alexnet_layers(), "classifier.6"); },
                       .keys = {"model.dropout"}});
}

}  // namespace kintsugi::models

// LeNet as trained in introductions to CIFAR-10: two convolutions and three fully connected layers (after LeCun et al.
// 1998, section II).
#include "kintsugi/models/convnet.h"
#include "kintsugi/models/image_family.h"

namespace kintsugi::models {
namespace {

const std::vector<NetLayer>& lenet_layers() {
  static const std::vector<NetLayer> layers = {
      {Convolve{"conv1", 6, {.kernel = 5}}, MaxPool{{.kernel = 2, .stride = 2}}},
      {Convolve{"conv2", 16, {.kernel = 5}}, MaxPool{{.kernel = 2, .stride = 2}}},
      {Dense{"fc1", 120}},
      {Dense{"fc2", 84}},
  };
  return layers;
}

}  // namespace

Family lenet() {
  return image_family({.name = "lenet",
                       .about = "LeNet: two convolutions and three dense layers, from images to a class or numbers",
                       .layers = static_cast<int64_t>(lenet_layers().size()),
                       .build = [](Builder& b) { return convnet(b, lenet_layers(), "fc3"); },
                       .keys = {"model.dropout"}});
}

}  // namespace kintsugi::models

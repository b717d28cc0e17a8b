// Simonyan, Zisserman 2015, table 1, columns A, B, D and E, as in torchvision; optionally with batch norms.
#include <array>

#include "kintsugi/models/convnet.h"
#include "kintsugi/models/image_family.h"

namespace kintsugi::models {
namespace {

constexpr size_t kVggGroups = 5;
using VggDepths = std::array<int64_t, kVggGroups>;  // convolutions per group

Trunk vgg(Builder& b, const VggDepths& depths, bool norm) {
  std::vector<NetLayer> layers;
  int64_t place = 0;  // index in the list "features" of torchvision
  for (size_t group = 0; group < kVggGroups; ++group) {
    NetLayer& layer = layers.emplace_back();
    for (int64_t i = 0; i < depths[group]; ++i) {
      layer.emplace_back(Convolve{.name = "features." + std::to_string(place),
                                  .filters = std::min<int64_t>(64 << group, 512),
                                  .window = {.kernel = 3, .padding = 1},
                                  .norm = norm,
                                  .bias_and_norm = norm});
      place += norm ? 3 : 2;
    }
    layer.emplace_back(MaxPool{{.kernel = 2, .stride = 2}});
    ++place;
  }
  layers.back().emplace_back(AdaptiveMean{7});
  layers.push_back({Dense{"classifier.0", 4096}});
  layers.push_back({Dense{"classifier.3", 4096}});
  return convnet(b, layers, "classifier.6");
}

// "features.3.norm.gamma" is "features.4.weight".
std::string vgg_name(std::string_view ours) {
  const size_t at = ours.find(".norm.");
  if (at == ours.npos) return ImageFamily::torch_name(ours);
  const std::string number(ours.substr(9, at - 9));
  return ImageFamily::torch_name("features." + std::to_string(std::stoll(number) + 1) +
                                 std::string(ours.substr(at + 5)));
}

Family vgg_family(std::string_view name, std::string_view about, Trunk (*build)(Builder&)) {
  std::vector<std::string_view> keys = {"model.dropout"};
  if (name.ends_with("_bn")) keys.insert(keys.end(), {"model.batch_norm", "model.batch_norm_samples"});
  return image_family(
      {.name = name, .about = about, .layers = kVggGroups + 2, .build = build, .their_name = vgg_name, .keys = keys});
}

constexpr VggDepths k11 = {1, 1, 2, 2, 2}, k13 = {2, 2, 2, 2, 2}, k16 = {2, 2, 3, 3, 3}, k19 = {2, 2, 4, 4, 4};

}  // namespace

Family vgg11() {
  return vgg_family("vgg11", "VGG-11: images to a class or numbers", [](Builder& b) { return vgg(b, k11, false); });
}
Family vgg13() {
  return vgg_family("vgg13", "VGG-13: images to a class or numbers", [](Builder& b) { return vgg(b, k13, false); });
}
Family vgg16() {
  return vgg_family("vgg16", "VGG-16: images to a class or numbers", [](Builder& b) { return vgg(b, k16, false); });
}
Family vgg19() {
  return vgg_family("vgg19", "VGG-19: images to a class or numbers", [](Builder& b) { return vgg(b, k19, false); });
}
Family vgg11_bn() {
  return vgg_family("vgg11_bn", "VGG-11 with batch norms", [](Builder& b) { return vgg(b, k11, true); });
}
Family vgg13_bn() {
  return vgg_family("vgg13_bn", "VGG-13 with batch norms", [](Builder& b) { return vgg(b, k13, true); });
}
Family vgg16_bn() {
  return vgg_family("vgg16_bn", "VGG-16 with batch norms", [](Builder& b) { return vgg(b, k16, true); });
}
Family vgg19_bn() {
  return vgg_family("vgg19_bn", "VGG-19 with batch norms", [](Builder& b) { return vgg(b, k19, true); });
}

}  // namespace kintsugi::models

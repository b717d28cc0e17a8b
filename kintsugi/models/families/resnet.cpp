// He et al. 2016, sections 3.3 and 4, with the stride of a bottleneck in its second convolution ("v1.5"). Images of up
// to 64 pixels use a stem that keeps their size, as in section 4.2, unless model.stem names the other.
#include <algorithm>
#include <array>

#include "kintsugi/models/convnet.h"
#include "kintsugi/models/image_family.h"

namespace kintsugi::models {
namespace {

constexpr size_t kGroups = 4;
using Blocks = std::array<int64_t, kGroups>;  // per group

constexpr int64_t kSmallImage = 64;

NetLayer stem_of(const config::Model& m) {
  const config::Stem stem = config::stem(m);
  const bool small = stem == config::Stem::automatic ? std::max(m.image_height, m.image_width) <= kSmallImage
                                                     : stem == config::Stem::small;
  if (small) return {Convolve{"conv1", 64, {.kernel = 3, .padding = 1}, true}};
  return {Convolve{"conv1", 64, {.kernel = 7, .stride = 2, .padding = 3}, true},
          MaxPool{{.kernel = 3, .stride = 2, .padding = 1}}};
}

Residual plain_block(const std::string& name, int64_t width, int64_t stride) {
  return {.shortcut = name + ".downsample",
          .branch = {{name + ".conv1", width, {.kernel = 3, .stride = stride, .padding = 1}, true},
                     {name + ".conv2", width, {.kernel = 3, .padding = 1}, true, Act::none}}};
}

Residual bottleneck(const std::string& name, int64_t width, int64_t stride) {
  return {.shortcut = name + ".downsample",
          .branch = {{name + ".conv1", width, {}, true},
                     {name + ".conv2", width, {.kernel = 3, .stride = stride, .padding = 1}, true},
                     {name + ".conv3", 4 * width, {}, true, Act::none}}};
}

using Block = Residual (*)(const std::string& name, int64_t width, int64_t stride);

Trunk resnet(Builder& b, const Blocks& blocks, Block block) {
  std::vector<NetLayer> layers = {stem_of(b.model())};
  for (size_t group = 0; group < kGroups; ++group)
    for (int64_t i = 0; i < blocks[group]; ++i)
      layers.push_back({block("layer" + std::to_string(group + 1) + "." + std::to_string(i), int64_t{64} << group,
                              group > 0 && i == 0 ? 2 : 1)});
  layers.back().emplace_back(GlobalMean{});
  return convnet(b, layers, "fc");
}

// "layer1.0.conv2.norm.gamma" is "layer1.0.bn2.weight"; in a shortcut, "0" is the convolution, "1" its norm.
std::string resnet_name(std::string_view ours) {
  std::string name = ImageFamily::torch_name(ours);
  if (const size_t at = name.find("downsample.norm."); at != name.npos) {
    name.replace(at, 16, "downsample.1.");
  } else if (const size_t of = name.find("downsample."); of != name.npos) {
    name.replace(of, 11, "downsample.0.");
  } else if (const size_t norm = name.find(".norm."); norm != name.npos) {
    const char number = name[norm - 1];
    name.replace(norm - 5, 11, std::string("bn") + number + ".");
  }
  return name;
}

Family resnet_family(std::string_view name, std::string_view about, const Blocks& blocks, Trunk (*build)(Builder&)) {
  int64_t layers = 1;
  for (int64_t n : blocks) layers += n;
  return image_family(
      {.name = name,
       .about = about,
       .layers = layers,
       .build = build,
       .their_name = resnet_name,
       .config = {{"stem", ConfigRow::Use::is, "stem", "\"auto\"", "auto:auto small:small large:large"}},
       .keys = {"model.stem", "model.batch_norm", "model.batch_norm_samples"}});
}

constexpr Blocks k18 = {2, 2, 2, 2}, k34 = {3, 4, 6, 3},  // and of ResNet-50
    k101 = {3, 4, 23, 3}, k152 = {3, 8, 36, 3};

}  // namespace

Family resnet18() {
  return resnet_family("resnet18", "ResNet-18: images to a class or numbers", k18,
                       [](Builder& b) { return resnet(b, k18, plain_block); });
}
Family resnet34() {
  return resnet_family("resnet34", "ResNet-34: images to a class or numbers", k34,
                       [](Builder& b) { return resnet(b, k34, plain_block); });
}
Family resnet50() {
  return resnet_family("resnet50", "ResNet-50: images to a class or numbers", k34,
                       [](Builder& b) { return resnet(b, k34, bottleneck); });
}

Family resnet101() {
  return resnet_family("resnet101", "ResNet-101: images to a class or numbers", k101,
                       [](Builder& b) { return resnet(b, k101, bottleneck); });
}
Family resnet152() {
  return resnet_family("resnet152", "ResNet-152: images to a class or numbers", k152,
                       [](Builder& b) { return resnet(b, k152, bottleneck); });
}

}  // namespace kintsugi::models

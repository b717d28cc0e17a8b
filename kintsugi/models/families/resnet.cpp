// He et al. 2016, sections 3.3 and 4, with the stride of a bottleneck in its second convolution ("v1.5"). Images of up
// to 64 pixels have a stem that keeps their size, as in section 4.2.
#include <algorithm>
#include <array>

#include "kintsugi/models/convnet.h"
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {
namespace {

constexpr size_t kGroups = 4;
using Blocks = std::array<int64_t, kGroups>;  // of each group

constexpr int64_t kSmallImage = 64;

NetLayer stem_of(const config::Model& m) {
  if (std::max(m.image_height, m.image_width) <= kSmallImage)
    return {Convolve{"conv1", 64, {.kernel = 3, .padding = 1}, true}};
  return {Convolve{"conv1", 64, {.kernel = 7, .stride = 2, .padding = 3}, true},
          MaxPool{{.kernel = 3, .stride = 2, .padding = 1}}};
}

Residual plain_block(const std::string& name, int64_t width, int64_t stride) {
  return {.shortcut = name + ".downsample",
          .branch = {{name + ".conv1", width, {.kernel = 3, .stride = stride, .padding = 1}, true},
                     {name + ".conv2", width, {.kernel = 3, .padding = 1}, true, false}}};
}

Residual bottleneck(const std::string& name, int64_t width, int64_t stride) {
  return {.shortcut = name + ".downsample",
          .branch = {{name + ".conv1", width, {}, true},
                     {name + ".conv2", width, {.kernel = 3, .stride = stride, .padding = 1}, true},
                     {name + ".conv3", 4 * width, {}, true, false}}};
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

Family resnet_family(std::string_view name, std::string_view about, const Blocks& blocks, Trunk (*build)(Builder&)) {
  config::Model m;
  m.objective = "classes";
  m.activation = "relu";
  m.positions = "none";
  m.tied = false;
  int64_t layers = 1;
  for (int64_t n : blocks) layers += n;
  return {.config = {.name = name,
                     .about = about,
                     .defaults = m,
                     .reads_tokens = false,
                     .reads_images = true,
                     .layers = layers,
                     .objectives = {"numbers"}},
          .build = build,
          .hugging_face = {}};
}

constexpr Blocks k18 = {2, 2, 2, 2}, k34 = {3, 4, 6, 3};  // and of ResNet-50

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

}  // namespace kintsugi::models

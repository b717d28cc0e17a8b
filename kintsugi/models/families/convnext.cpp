// Liu et al. 2022, "A ConvNet for the 2020s", section 3, as in torchvision.
#include <array>

#include "kintsugi/models/convnet.h"
#include "kintsugi/models/image_family.h"

namespace kintsugi::models {
namespace {

constexpr size_t kNextGroups = 4;
struct NextSizes {
  std::array<int64_t, kNextGroups> depths;
  int64_t width;  // of the first group; doubles with each group

  constexpr int64_t blocks() const { return depths[0] + depths[1] + depths[2] + depths[3]; }
};

Trunk convnext(Builder& b, const NextSizes& sizes) {
  std::vector<NetLayer> layers = {
      {Convolve{"stem", sizes.width, {.kernel = 4, .stride = 4}, false, Act::none}, ChannelNorm{"stem.norm"}}};
  int64_t before = 0;
  for (size_t group = 0; group < kNextGroups; ++group)
    for (int64_t i = 0; i < sizes.depths[group]; ++i, ++before) {
      NetLayer& layer = layers.emplace_back();
      if (group > 0 && i == 0) {
        const std::string name = "downsample" + std::to_string(group);
        layer.emplace_back(ChannelNorm{name + ".norm"});
        layer.emplace_back(Convolve{name, sizes.width << group, {.kernel = 2, .stride = 2}, false, Act::none});
      }
      layer.emplace_back(NextBlock{"stage" + std::to_string(group) + "." + std::to_string(i),
                                   static_cast<double>(before) / static_cast<double>(sizes.blocks() - 1)});
    }
  layers.back().emplace_back(GlobalMean{});
  layers.back().emplace_back(ChannelNorm{"norm", b.model().final_norm_epsilon});
  return convnet(b, layers, "head");
}

// "stage1.0.dwconv.weight" is "features.3.0.block.0.weight".
std::string convnext_name(std::string_view ours) {
  std::string name = ImageFamily::torch_name(ours);
  const auto begins = [&](std::string_view begin, const std::string& other) {
    if (!name.starts_with(begin)) return false;
    name.replace(0, begin.size(), other);
    return true;
  };
  if (begins("stem.norm.", "features.0.1.") || begins("stem.", "features.0.0.") || begins("norm.", "classifier.0.") ||
      begins("head.", "classifier.2."))
    return name;
  if (name.starts_with("downsample")) {
    const std::string at = "features." + std::to_string(2 * (name[10] - '0')) + ".";
    return begins(name.substr(0, 12) + "norm.", at + "0.") || begins(name.substr(0, 12), at + "1.") ? name : name;
  }
  const size_t dot = name.find('.', 7);
  const std::string at = "features." + std::to_string(2 * (name[5] - '0') + 1) + "." + name.substr(7, dot - 7) + ".";
  name = name.substr(dot + 1);
  if (begins("dwconv.", "block.0.") || begins("norm.", "block.2.") || begins("pwconv1.", "block.3.") ||
      begins("pwconv2.", "block.5."))
    return at + name;
  return at + name;
}

Family convnext_family(std::string_view name, std::string_view about, const NextSizes& sizes,
                       Trunk (*build)(Builder&)) {
  return image_family({.name = name,
                       .about = about,
                       .layers = sizes.blocks() + 1,
                       .build = build,
                       .their_name = convnext_name,
                       .config = {is("final_norm_epsilon", "final_norm_epsilon", "1e-06")},
                       .keys = {"model.drop_path", "model.final_norm_epsilon"}});
}

constexpr NextSizes kTiny = {{3, 3, 9, 3}, 96}, kSmall = {{3, 3, 27, 3}, 96}, kBase = {{3, 3, 27, 3}, 128};

}  // namespace

Family convnext_tiny() {
  return convnext_family("convnext_tiny", "ConvNeXt-T: images to a class or numbers", kTiny,
                         [](Builder& b) { return convnext(b, kTiny); });
}
Family convnext_small() {
  return convnext_family("convnext_small", "ConvNeXt-S: images to a class or numbers", kSmall,
                         [](Builder& b) { return convnext(b, kSmall); });
}
Family convnext_base() {
  return convnext_family("convnext_base", "ConvNeXt-B: images to a class or numbers", kBase,
                         [](Builder& b) { return convnext(b, kBase); });
}

}  // namespace kintsugi::models

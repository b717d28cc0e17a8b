// U-Net (Ronneberger et al. 2015; Cicek et al. 2016 in 3-D): a class or numbers per pixel. Convolutions are padded and
// have batch norms; model.embed is the number of filters of the first level, which doubles with each level.
#include "kintsugi/base/error.h"
#include "kintsugi/config/derive.h"
#include "kintsugi/models/convnet.h"
#include "kintsugi/models/image_family.h"

namespace kintsugi::models {
namespace {

constexpr int kLevels = 4;

void add_pair(NetLayer& layer, const std::string& name, int64_t filters) {
  for (const char* which : {".conv1", ".conv2"})
    layer.emplace_back(Convolve{name + which, filters, {.kernel = 3, .padding = 1}, true});
}

Trunk unet(Builder& b) {
  const config::Model& m = b.model();
  for (const auto& [key, size] :
       {std::pair{"height", m.image_height}, std::pair{"width", m.image_width}, std::pair{"depth", m.image_depth}}) {
    constexpr int64_t kParts = 1 << kLevels;
    if (size % kParts != 0)
      throw base::UserError("model",
                            "model.image_{} = {} is not a multiple of {}, which a unet of {} levels needs; nearest: {}",
                            key, size, kParts, kLevels, config::multiples_around(size, kParts));
  }
  std::vector<NetLayer> layers;
  for (int level = 0; level <= kLevels; ++level) {
    NetLayer& layer = layers.emplace_back();
    if (level > 0) layer.emplace_back(MaxPool{{.kernel = 2, .stride = 2}});
    add_pair(layer, "down" + std::to_string(level), m.embed << level);
    if (level < kLevels) layer.emplace_back(Keep{level});
  }
  for (int level = kLevels; level-- > 0;) {
    NetLayer& layer = layers.emplace_back();
    const std::string name = "up" + std::to_string(level);
    layer.emplace_back(Upward{name + ".up", m.embed << level});
    layer.emplace_back(Join{level});
    add_pair(layer, name, m.embed << level);
  }
  return convnet(b, layers, "head");
}

}  // namespace

Family unet() {
  return image_family({.name = "unet",
                       .about = "U-Net: images or volumes to a class or numbers of each pixel",
                       .layers = 2 * kLevels + 1,
                       .build = unet,
                       .objective = "pixels",
                       .objectives = {"fields"},
                       .keys = {"model.embed", "model.batch_norm", "model.batch_norm_samples"}});
}

}  // namespace kintsugi::models

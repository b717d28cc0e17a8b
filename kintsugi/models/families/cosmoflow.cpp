// CosmoFlow (Mathuriya et al. 2018) as in MLPerf HPC: volumes to numbers between -1.2 and 1.2.
#include <algorithm>

#include "kintsugi/models/convnet.h"
#include "kintsugi/models/image_family.h"

namespace kintsugi::models {
namespace {

constexpr int kConvolutions = 5;

Trunk cosmoflow(Builder& b) {
  const config::Model& m = b.model();
  int64_t size = std::min(m.image_height, m.image_width);
  if (m.image_depth > 0) size = std::min(size, m.image_depth);
  std::vector<NetLayer> layers;
  for (int i = 0; i < kConvolutions; ++i) {
    layers.push_back({Convolve{
        "conv" + std::to_string(i + 1), int64_t{32} << i, {.kernel = 3, .padding = 1}, false, Act::leaky_relu}});
    // A volume of 16 is a single position after four pools.
    if (size < 2) continue;
    layers.back().emplace_back(MaxPool{{.kernel = 2, .stride = 2}});
    size /= 2;
  }
  layers.push_back({Dense{"dense1", 128, Act::leaky_relu}});
  layers.push_back({Dense{"dense2", 64, Act::leaky_relu}});
  return convnet(b, layers, "dense3", 1.2);
}

}  // namespace

Family cosmoflow() {
  return image_family({.name = "cosmoflow",
                       .about = "CosmoFlow: five convolutions and three dense layers, from volumes to numbers",
                       .layers = kConvolutions + 2,
                       .build = cosmoflow,
                       .objective = "numbers",
                       .objectives = {"classes"},
                       .keys = {"model.dropout"}});
}

}  // namespace kintsugi::models

#include "app/model_in_words.h"

#include <fmt/format.h>

#include "kintsugi/models/models.h"

namespace kintsugi::app {

std::string model_in_words(const config::Model& m) {
  std::string text = fmt::format("{}{}: {} layer{}", m.name.empty() ? "" : m.name + ", ", m.family, m.layers,
                                 m.layers == 1 ? "" : "s");
  if (!models::reads_images(m) || m.patch > 0) text += fmt::format(", embed {}", m.embed);
  if (models::reads_images(m))
    text += fmt::format(", images {} x {}{} x {}", m.image_channels,
                        m.image_depth > 0 ? fmt::format("{} x ", m.image_depth) : "", m.image_height, m.image_width);
  return text;
}

}  // namespace kintsugi::app

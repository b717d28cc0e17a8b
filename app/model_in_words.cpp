#include "app/model_in_words.h"

#include <fmt/format.h>

namespace kintsugi::app {

std::string model_in_words(const config::Model& m) {
  const std::string name = m.name.empty() ? "" : m.name + ", ";
  return fmt::format("{}{}: {} layer{}, embed {}", name, m.family, m.layers, m.layers == 1 ? "" : "s", m.embed);
}

}  // namespace kintsugi::app

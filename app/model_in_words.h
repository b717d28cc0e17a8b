#pragma once

#include <string>

#include "kintsugi/config/settings.h"

namespace kintsugi::app {

// "gpt2, gpt: 12 layers, embed 768"
std::string model_in_words(const config::Model& model);

}  // namespace kintsugi::app

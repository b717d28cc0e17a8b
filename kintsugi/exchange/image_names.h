// Names of the weights of image models in folders of other programs than the one that their family follows.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kintsugi/models/family.h"

namespace kintsugi::exchange {

enum class Program : uint8_t { transformers, timm, torchvision };

struct ImageNames {
  Program program;
  std::string_view family;     // or the beginning of its name: "resnet" of resnet50
  std::string_view first;      // a tensor that only folders with these names contain
  models::HuggingFace folder;  // its names of weights; config_images.h reads its config.json
};

// Those of all families. Families of convolutional networks have torchvision's names, vit has transformers'; timm's
// ResNets have torchvision's.
std::span<const ImageNames> image_names();

// Those of a family and a program, or null.
const ImageNames* image_names(std::string_view family, Program program);

}  // namespace kintsugi::exchange

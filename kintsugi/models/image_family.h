// Shared by the families of convolutional networks: their rows, and the external names and dim orders of their weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kintsugi/models/family.h"

namespace kintsugi::models {

struct ImageFamily {
  std::string_view name, about;
  int64_t layers = 0;
  Trunk (*build)(Builder&) = nullptr;
  std::string (*their_name)(std::string_view) = torch_name;
  std::string_view objective = "classes";
  std::vector<std::string_view> objectives = {"numbers"};
  std::vector<ConfigRow> config = {};       // further keys of config.json
  std::vector<std::string_view> keys = {};  // further keys of [model] that the network reads

  // PyTorch's names of the parts of a layer: "conv1.norm.gamma" is "conv1.norm.weight".
  static std::string torch_name(std::string_view ours);
};

Family image_family(const ImageFamily& family);

// Replaces the suffix of a name; returns false if the name ends otherwise.
bool replace_end(std::string& name, std::string_view end, std::string_view other);

}  // namespace kintsugi::models

// What the configuration knows of models: families, named sizes and optimizers, as rows. The rows are in models/, and
// are passed to whatever reads a configuration.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::config {

// ffn = ceil(embed * times / per) rounded up to a multiple.
struct FfnWidth {
  int64_t times = 4;
  int64_t per = 1;
  int64_t multiple = 1;

  int64_t of(int64_t embed) const;
};

struct Family {
  std::string_view name;   // value of model.family
  std::string_view about;  // one line
  // Defaults of the [model] keys whose default depends on the family.
  Model defaults = {};
  FfnWidth ffn = {};
  bool reads_tokens = true;   // false: numbers or images, without vocabulary, sequence and attention
  bool reads_images = false;  // if it does not read tokens: images, else numbers
  bool has_blocks = false;    // if it does not read tokens: transformer blocks, whose keys of [model] it reads
  int64_t layers = 0;         // fixed number of layers; 0: model.layers is free
  // Allowed besides the default.
  std::vector<std::string_view> objectives = {};
  // If it does not read tokens: further keys that the network reads, besides the sizes of its samples: "model.patch".
  std::vector<std::string_view> keys = {};
};

struct NamedSize {
  std::string_view name;
  std::string_view source;
  Model model;  // complete, including family and name
};

struct Optimizer {
  std::string_view name;                    // value of train.optimizer
  std::string_view about;                   // one line
  std::vector<std::string_view> keys = {};  // keys that only some optimizers use: "train.betas"
};

struct Catalog {
  std::span<const Family> families;
  std::span<const NamedSize> sizes;
  std::span<const Optimizer> optimizers;
  // The model of a Hugging Face folder, which model.name may also name; nothing if there is no such folder. Null:
  // folders are not supported.
  std::optional<Model> (*model_of_folder)(const std::string& path) = nullptr;

  const Family* family(std::string_view name) const;  // null if there is none
  const NamedSize* size(std::string_view name) const;
  const Optimizer* optimizer(std::string_view name) const;
};

}  // namespace kintsugi::config

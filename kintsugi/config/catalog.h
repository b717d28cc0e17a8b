// What the configuration has to know of models: their families, the sizes that have a name and the optimizers, as rows.
// The rows are in models/, and are passed to whatever reads a configuration.
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
  std::string_view name;   // of the key model.family
  std::string_view about;  // one line
  // The keys of [model] whose default is "that of the family" have it from here.
  Model defaults = {};
  FfnWidth ffn = {};
  bool reads_tokens = true;   // else numbers or images: there is no vocabulary, no sequence and no attention
  bool reads_images = false;  // else, where it reads no tokens, numbers
  int64_t layers = 0;         // where the family fixes their number; 0: model.layers is free
  // Besides the default.
  std::vector<std::string_view> objectives = {};
};

struct NamedSize {
  std::string_view name;
  std::string_view source;
  Model model;  // of its family, and called by that name
};

struct Optimizer {
  std::string_view name;                    // of the key train.optimizer
  std::string_view about;                   // one line
  std::vector<std::string_view> keys = {};  // that it reads and not all optimizers do: "train.betas"
};

struct Catalog {
  std::span<const Family> families;
  std::span<const NamedSize> sizes;
  std::span<const Optimizer> optimizers;
  // Of a Hugging Face folder, which model.name may be too: its model, or nothing if there is no such folder. Null where
  // no folders are read.
  std::optional<Model> (*model_of_folder)(const std::string& path) = nullptr;

  const Family* family(std::string_view name) const;  // null if there is none
  const NamedSize* size(std::string_view name) const;
  const Optimizer* optimizer(std::string_view name) const;
};

}  // namespace kintsugi::config

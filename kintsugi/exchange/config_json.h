// Converts the config.json of a Hugging Face folder to [model] and back, for transformers 4 and 5.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

struct FolderConfig {
  config::Model model;             // complete, including derived values
  tensor::DType dtype;             // of the weights
  std::vector<std::string> notes;  // what was ignored
};

// Throws UserError "[model] "NAME":LINE: ..." for an unknown family, and for each setting that changes the network in
// an unsupported way. Ignores, with a note, keys that models of the family do not read, unless the folder contains
// custom model code.
FolderConfig read_config(std::string_view name, std::string_view text);

// Writes the format that transformers reads. Throws UserError where the family's config.json cannot express the model.
std::string write_config(const config::Model& model, tensor::DType dtype);

// The reason why a model cannot be written as a Hugging Face folder; empty if it can.
std::string why_not_exported(const config::Model& model);

}  // namespace kintsugi::exchange

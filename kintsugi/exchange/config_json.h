// config.json of a Hugging Face folder: what it says of the network, as [model], and back. Of transformers 4 and 5.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

struct FolderConfig {
  config::Model model;             // complete: derived values are filled in
  tensor::DType dtype;             // of the weights
  std::vector<std::string> notes;  // what was passed over
};

// UserError "[model] "NAME":LINE: ..." for a family that we do not have, and for each setting that changes the network
// in a way that we lack. A key that models of the family do not read is passed over with a note, unless the folder
// brings code of its own for the model.
FolderConfig read_config(std::string_view name, std::string_view text);

// As transformers reads it. UserError where the family's config.json cannot say what the model computes.
std::string write_config(const config::Model& model, tensor::DType dtype);

// Why a model cannot be written as a Hugging Face folder; empty if it can.
std::string why_not_exported(const config::Model& model);

}  // namespace kintsugi::exchange

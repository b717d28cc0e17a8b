// config.json of a Hugging Face folder: what it says of the network, as [model], and back. Of transformers 4 and 5.
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/config/settings.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

struct FolderConfig {
  config::Model model;  // complete: derived values are filled in
  tensor::DType dtype;  // of the weights
};

// UserError "[model] "NAME":LINE: ..." for a family that we do not have, and for each setting that changes the network
// in a way that we lack; a key that is not known is refused unless its value is null, false, zero or empty.
FolderConfig read_config(std::string_view name, std::string_view text);

// As transformers reads it. UserError where the family's config.json cannot say what the model is.
std::string write_config(const config::Model& model, tensor::DType dtype);

}  // namespace kintsugi::exchange

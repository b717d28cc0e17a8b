// Converts the config.json of a Hugging Face folder to [model] and back, for transformers 4 and 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json_writer.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

struct FolderConfig {
  config::Model model;                       // complete, including derived values
  tensor::DType dtype;                       // of the weights
  std::vector<std::string> notes;            // what was ignored
  std::string_view named_by = "model_type";  // the key whose value is the family; empty: several
  bool any_image_size = false;  // preprocessor_config.json may give another size of images than `model` has
};

// Throws UserError "[model] "NAME":LINE: ..." for an unknown family, and for each setting that changes the network in
// an unsupported way. Ignores, with a note, keys that models of the family do not read, unless the folder contains
// custom model code.
FolderConfig read_config(std::string_view name, std::string_view text);

// The ids of a model's config.json that begin and end texts; absent ones are written as null, because transformers'
// defaults may exceed the vocabulary.
struct TextIds {
  std::optional<int32_t> begin;
  std::vector<int32_t> ends = {};
};

// Writes the format that transformers reads. Throws UserError where the family's config.json cannot express the model.
// `as_transformers`: for a family whose folders have torchvision's names, those of transformers' class.
std::string write_config(const config::Model& model, tensor::DType dtype, const TextIds& ids = {},
                         bool as_transformers = false);
// Writes the members bos_token_id and eos_token_id of an object.
void write_text_ids(const TextIds& ids, base::JsonWriter& out);

// The reason why a model cannot be written as a Hugging Face folder; empty if it can.
std::string why_not_exported(const config::Model& model);

}  // namespace kintsugi::exchange

// config.json of image models as other programs describe them: transformers' ResNet and ConvNeXt, timm's ResNets,
// ConvNeXts and ViTs, and torchvision's ViTs by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json_writer.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/exchange/config_reader.h"

namespace kintsugi::exchange {

struct OtherImageModel {
  std::string family;
  std::string_view named_by;  // the key whose value is the family's name; empty: there is none
  // Images of any size are possible, so that preprocessor_config.json determines it.
  bool any_size = false;
};

// Sets the sizes, the objective and the outputs, and returns the family; nothing if the file is not one of these. Keys
// of the family that it does not set remain to be read. Throws UserError "[model] "NAME":LINE: ..." for an architecture
// that no family has.
std::optional<OtherImageModel> read_other_image_model(ConfigReader& config, ModelText& model);

// Values of "model_type" that it reads.
std::vector<std::string_view> other_image_types();

// The objective and number of outputs of a classifier, by id2label, num_labels and problem_type.
config::Objective read_labels(const base::Json& root, ModelText& model);

// Writes model_type and the sizes of a ResNet or ConvNeXt as transformers does, members of the current object.
// `architecture`: the name of its class. Throws UserError for a model of another family.
void write_transformers_images(const config::Model& model, base::JsonWriter& out);
std::string_view transformers_architecture(const config::Model& model);

}  // namespace kintsugi::exchange

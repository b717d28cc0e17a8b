// preprocessor_config.json of a Hugging Face folder: how transformers normalizes the images of a model.
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/config/settings.h"

namespace kintsugi::exchange {

inline constexpr std::string_view kImageProcessorFile = "preprocessor_config.json";

// Stores image_mean and image_deviation of the file in `model`, of images: with r = rescale_factor (1 without
// do_rescale), transformers computes (r x - image_mean) / image_std. Throws UserError "[model] "NAME":LINE: ..." for
// another number of channels than the model's, for numbers that differ from those of config.json, which `model` has
// then, and for steps that change values in other ways.
void read_image_processor(std::string_view name, std::string_view text, config::Model& model);

// The size of the images that transformers makes: crop_size, or size, each a number or an object with height and width,
// or with shortest_edge. Stores it as the model's, if there is one.
void read_image_size(std::string_view name, std::string_view text, config::Model& model);

// The file for a model of images that are uint8.
std::string write_image_processor(const config::Model& model);

}  // namespace kintsugi::exchange

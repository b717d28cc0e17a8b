// Completes a configuration: derives values by the rules in keys.cpp, and checks values against each other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// Derives every unset value; checks nothing. `cores`: usable by all ranks together.
Given fill_derived(Given given, int64_t cores);

// fill_derived(), then all checks. Throws UserError "[config] run.toml:7: ..." for contradictory values. model.vocab
// stays 0 if it is determined by the tokenizer.
Resolved resolve(Given given, int64_t cores);

// read_file() and resolve().
Resolved load(const std::filesystem::path& path, const Catalog& catalog, std::span<const std::string> sets,
              int64_t cores);

// Token ids taken from the data's tokenizer; -1: none.
struct TokenizerIds {
  int64_t mask = -1, first = -1, separator = -1;
};
// Call once the data's tokenizer is known: sets model.vocab, and the ids in [data] that the objective needs. Throws
// UserError if model.vocab is smaller than the tokenizer's vocabulary.
void fill_from_tokenizer(Resolved& resolved, int64_t vocab, const TokenizerIds& ids = {});

// As above for numeric data: sets model.features and model.outputs. Throws UserError on a mismatch.
void fill_from_numbers(Resolved& resolved, int64_t features, int64_t outputs);

// The same once the image data is known: fills model.image_channels, image_depth, image_height, image_width and
// image_dtype, and model.outputs, which may exceed the number of classes of the data but not its `numbers`. Throws
// UserError on a mismatch.
struct ImageSizes {
  int64_t channels = 0, depth = 0, height = 0, width = 0;
  std::string dtype = "uint8";
};
void fill_from_images(Resolved& resolved, const ImageSizes& sizes, int64_t outputs, bool numbers);

// Full names of the model sizes that depend on the data and are still unknown.
std::vector<std::string> sizes_of_data(const Resolved& resolved);

// Throws UserError if [data] train is not set.
void require_data(const Resolved& resolved);

// Sets the chat template for conversations, unless [data] names one.
void fill_chat_template(Resolved& resolved, std::string_view name);

// Whether the training data are conversations: a file NAME.jsonl.
bool learns_conversations(const Data& data);

// Number of ranks that divide the samples of a step.
int64_t data_ranks(const Settings& settings);

}  // namespace kintsugi::config

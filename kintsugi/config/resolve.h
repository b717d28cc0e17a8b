// Completes the given configuration: derived values are filled in by the rules of keys.cpp, and values are checked
// against each other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// Fills in every derived value by its rule; checks nothing. `cores` are those that all ranks may use together.
Given fill_derived(Given given, int64_t cores);

// fill_derived, then all checks. UserError "[config] run.toml:7: ..." for values that contradict each other.
// model.vocab stays 0 if it is left to the tokenizer.
Resolved resolve(Given given, int64_t cores);

// read_file and resolve.
Resolved load(const std::filesystem::path& path, const Catalog& catalog, std::span<const std::string> sets,
              int64_t cores);

// What a configuration takes from the data's tokenizer; -1: it has none.
struct TokenizerIds {
  int64_t mask = -1, first = -1, separator = -1;
};
// To be called when the data's tokenizer is known, with its vocabulary: fills model.vocab, and the ids of [data] where
// the objective needs them; UserError if model.vocab is smaller than the tokenizer's.
void fill_from_tokenizer(Resolved& resolved, int64_t vocab, const TokenizerIds& ids = {});

// The same when data of numbers is known: fills model.features and model.outputs. UserError if they are others.
void fill_from_numbers(Resolved& resolved, int64_t features, int64_t outputs);

// The same when data of images is known: fills model.image_channels, image_depth, image_height, image_width and
// image_dtype, and model.outputs, which may be more than the data's classes, but not than its `numbers`. UserError if
// they are others.
struct ImageSizes {
  int64_t channels = 0, depth = 0, height = 0, width = 0;
  std::string dtype = "uint8";
};
void fill_from_images(Resolved& resolved, const ImageSizes& sizes, int64_t outputs, bool numbers);

// The sizes of the model that follow from its data and are not known yet, as full names of keys.
std::vector<std::string> sizes_of_data(const Resolved& resolved);

// UserError if [data] train is not given.
void require_data(const Resolved& resolved);

// The chat template that conversations are rendered with, where [data] names none.
void fill_chat_template(Resolved& resolved, std::string_view name);

// Whether the data to train on are conversations: a file NAME.jsonl.
bool learns_conversations(const Data& data);

// Ranks among which the samples of a step are divided.
int64_t data_ranks(const Settings& settings);

}  // namespace kintsugi::config

// Creates the samples of a model from its data; their kind depends on its family and objective.
#pragma once

#include <memory>

#include "kintsugi/config/resolve.h"
#include "kintsugi/data/number_table.h"
#include "kintsugi/images/image_set.h"
#include "kintsugi/samples/conversation_samples.h"
#include "kintsugi/samples/evaluation_sampler.h"
#include "kintsugi/samples/sampler.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::data {
class Preferences;
class Prompts;
}  // namespace kintsugi::data

namespace kintsugi::samples {

// A data file: tokens, with document labels if the objective has them, a table of numbers, conversations, or images
// with classes.
struct DataFile {
  std::shared_ptr<const data::TokenFile> tokens = {};
  std::shared_ptr<const data::NumberTable> numbers = {};
  std::shared_ptr<const data::Conversations> conversations = {};
  std::shared_ptr<const images::ImageSet> images = {};
  std::shared_ptr<const data::Preferences> preferences = {};
  std::shared_ptr<const data::Prompts> prompts = {};
  double weight = 1.0;  // in a mixture
};

// The special ids used in samples, where the tokenizer has them.
config::TokenizerIds ids_of(const text::Tokenizer& tokenizer);

// The kind of its image labels.
images::LabelKind label_kind(const config::Model& model);

// Whether each sample has a label: a class or numbers.
bool has_labels(const config::Model& model);

// Training samples, which do not end. Throws UserError for data that does not fit the model, and for several files
// where samples are rows or documents.
std::unique_ptr<SampleSource> training_samples(const config::Settings& settings, const std::vector<DataFile>& files);

// All samples of a file once, of `sequence` tokens.
std::unique_ptr<FiniteSource> evaluation_samples(const config::Settings& settings, const DataFile& file,
                                                 int64_t sequence);

}  // namespace kintsugi::samples

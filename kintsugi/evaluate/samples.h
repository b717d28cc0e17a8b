// The samples of a model from its data: what kind they are follows from its family and its objective.
#pragma once

#include <memory>

#include "kintsugi/config/resolve.h"
#include "kintsugi/data/conversation_samples.h"
#include "kintsugi/data/evaluation_sampler.h"
#include "kintsugi/data/number_table.h"
#include "kintsugi/data/sampler.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::evaluate {

// A file of data: tokens, with labels of its documents where the objective has them, or a table of numbers, or
// conversations.
struct DataFile {
  std::shared_ptr<const data::TokenFile> tokens = {};
  std::shared_ptr<const data::NumberTable> numbers = {};
  std::shared_ptr<const data::Conversations> conversations = {};
  double weight = 1.0;  // in a mixture
};

// The ids by which samples are marked, as far as the tokenizer has them.
config::TokenizerIds ids_of(const text::Tokenizer& tokenizer);

// Whether the model reads a table of numbers instead of tokens, and whether documents have labels.
bool reads_numbers(const config::Model& model);
bool has_labels(const config::Model& model);

// Samples of training: they do not end. UserError for data that does not fit the model, and for several files where
// samples are rows or documents.
std::unique_ptr<data::SampleSource> training_samples(const config::Settings& settings,
                                                     const std::vector<DataFile>& files);

// All samples of a file, once. Of `sequence` tokens.
std::unique_ptr<data::FiniteSource> evaluation_samples(const config::Settings& settings, const DataFile& file,
                                                       int64_t sequence);

}  // namespace kintsugi::evaluate

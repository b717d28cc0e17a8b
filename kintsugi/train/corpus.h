// The data of a run: its tokenizer, training samples and validation samples.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/origin.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/samples/samples.h"
#include "kintsugi/text/tokenizer.h"
#include "kintsugi/train/data_identity.h"

namespace kintsugi::train {

// The opened files of [data].
struct DataFiles {
  struct Opened {
    samples::DataFile file;
    data::TokenSummary summary;  // token files only
  };
  std::vector<Opened> train;
  std::vector<Opened> validation;  // as in data.validation
  std::string tokenizer_json;      // empty: none next to the token files
  std::filesystem::path tokenizer_path;
  std::string_view chat_template;  // for conversations; otherwise empty
  DataIdentity identity;
};

struct ValidationSamples {
  std::string domain;  // empty: unnamed, and the only one
  std::unique_ptr<samples::FiniteSource> samples;
};

struct Corpus {
  std::string tokenizer_json;  // empty: none next to the token files
  std::unique_ptr<samples::SampleSource> train;
  std::vector<ValidationSamples> validation;
  std::vector<std::shared_ptr<const data::Prompts>> validation_prompts;  // for rewards, in place of samples
  DataIdentity identity;
  std::string note;  // what is omitted from the training data, if anything
};

// Opens the files of [data]. Throws UserError for damaged files, and unless one tokenizer produced all files, as far as
// that is known.
DataFiles open_data_files(const config::Resolved& resolved);

// Sets the model sizes that depend on the data (config::sizes_of_data), and checks those that are given. Throws
// UserError on a mismatch.
Corpus make_corpus(config::Resolved& resolved, const DataFiles& files);

// Does both.
Corpus open_corpus(config::Resolved& resolved);

// Sets the model sizes that depend on the data, which is opened only if there are any. Throws UserError if they are
// unknown and no data is named.
void complete_from_data(config::Resolved& resolved);

}  // namespace kintsugi::train

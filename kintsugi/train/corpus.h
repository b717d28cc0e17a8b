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

// The files of [data], opened.
struct DataFiles {
  struct Opened {
    samples::DataFile file;
    data::TokenSummary summary;  // of tokens
  };
  std::vector<Opened> train;
  std::vector<Opened> validation;  // as data.validation
  std::string tokenizer_json;      // empty: there is none beside the token files
  std::filesystem::path tokenizer_path;
  std::string_view chat_template;  // of conversations; empty: the data are none
  DataIdentity identity;
};

struct ValidationSamples {
  std::string domain;  // empty: it has no name, and there is no other
  std::unique_ptr<samples::FiniteSource> samples;
};

struct Corpus {
  std::string tokenizer_json;  // empty: there is none beside the token files
  std::unique_ptr<samples::SampleSource> train;
  std::vector<ValidationSamples> validation;
  DataIdentity identity;
  std::string note;  // what is left out of the data to train on; empty: nothing
};

// Opens the files of [data]. UserError for anything that is damaged, and unless one tokenizer made all files, as far as
// that is known.
DataFiles open_data_files(const config::Resolved& resolved);

// Fills in the sizes of the model that follow from the data (config::sizes_of_data), and checks those that are given.
// UserError for what does not fit.
Corpus make_corpus(config::Resolved& resolved, const DataFiles& files);

// Both.
Corpus open_corpus(config::Resolved& resolved);

// Completes the configuration: fills in the sizes of the model that follow from its data, which is opened only if there
// are any. UserError where they are not known and no data is named.
void complete_from_data(config::Resolved& resolved);

}  // namespace kintsugi::train

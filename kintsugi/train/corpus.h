// The data of a run: its tokenizer, training samples and validation samples.
#pragma once

#include <memory>
#include <string>

#include "kintsugi/config/origin.h"
#include "kintsugi/data/evaluation_sampler.h"
#include "kintsugi/data/sampler.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::train {

struct Corpus {
  std::string tokenizer_json;  // empty: there is none beside the token files
  std::unique_ptr<data::Sampler> train;
  std::unique_ptr<data::EvaluationSampler> validation;  // null: none
  uint64_t train_tokens = 0;
};

// Opens the files of [data], fills model.vocab from the tokenizer beside them, and checks that every token has a row
// in the vocabulary and that one tokenizer made all files, as far as that is known. UserError for anything that is
// damaged or does not fit.
Corpus open_corpus(config::Resolved& resolved);

}  // namespace kintsugi::train

// From a pipeline file to token files: cleans the sources and tokenizes each domain.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kintsugi/corpus/clean.h"
#include "kintsugi/data/prepare.h"

namespace kintsugi::corpus {

struct PreparedDomain {
  std::string name;
  data::PrepareResult result;
};

struct PreparedCorpus {
  Cleaned cleaned;
  std::vector<PreparedDomain> domains;  // without those that have no document
};

// Writes, in `options.output`: clean/DOMAIN.jsonl, DOMAIN/train and validation token files, tokenizer.json (one for all
// domains), report.html and counts.json. Options other than inputs and field apply to each domain. An interrupted call
// continues where it was, if the sources and the spec have not changed. Throws UserError "[prepare] ...", also if the
// folder holds a finished corpus and `options.force` is false.
PreparedCorpus prepare_corpus(const Spec& spec, const data::PrepareOptions& options);

}  // namespace kintsugi::corpus

#include "kintsugi/train/corpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/train/sample_texts.h"

namespace kintsugi::train {
namespace {

using Opened = DataFiles::Opened;

// Opens a file, and its labels where the model has them, and adds both to the identity.
Opened open(const config::Settings& s, const std::string& path, const std::string& labels, DataRole role,
            DataIdentity& identity) {
  Opened opened;
  const auto open_table = [&](const std::string& table) {
    opened.file.numbers = std::make_shared<const data::NumberTable>(table);
    identity.push_back({role, table, opened.file.numbers->fingerprint()});
  };
  if (evaluate::reads_numbers(s.model)) {
    open_table(path);
    return opened;
  }
  opened.file.tokens = std::make_shared<const data::TokenFile>(path);
  opened.summary = data::summarize(*opened.file.tokens, static_cast<int>(s.parallel.threads), stderr);
  identity.push_back({role, path, data::checked_fingerprint(*opened.file.tokens, opened.summary)});
  if (!evaluate::has_labels(s.model)) return opened;
  if (labels.empty())
    throw base::UserError("config",
                          "the objective \"{}\" needs labels of the documents of \"{}\": data.{}_labels names "
                          "a CSV file with a line for each",
                          s.model.objective, path, role == DataRole::train ? "train" : "validation");
  open_table(labels);
  return opened;
}

// The tokenizer that made all the files, by what is known of it: the fingerprint beside each file, and the
// tokenizer.json that `prepare` writes into its folder.
class CommonTokenizer {
 public:
  void add(const Opened& opened) {
    if (!opened.file.tokens) return;
    const std::filesystem::path prefix = opened.file.tokens->prefix(), path = prefix.parent_path() / "tokenizer.json";
    const std::string json = std::filesystem::exists(path) ? base::read_file(path) : "";
    std::string fingerprint = opened.summary.tokenizer;
    if (!json.empty()) {
      const std::string beside = data::tokenizer_fingerprint(json);
      if (!fingerprint.empty() && beside != fingerprint)
        throw base::UserError("data",
                              "\"{}\" was made with another tokenizer than the \"{}\" beside it; prepare it again",
                              prefix.string(), path.string());
      fingerprint = beside;
    }
    if (fingerprint.empty()) return;
    if (fingerprint_.empty()) {
      fingerprint_ = fingerprint;
      first_ = prefix;
    }
    if (fingerprint != fingerprint_)
      throw base::UserError("data", "\"{}\" and \"{}\" were made with different tokenizers; prepare both with one",
                            first_.string(), prefix.string());
    if (json_.empty()) {
      json_ = json;
      path_ = path;
    }
  }

  const std::string& json() const { return json_; }  // empty: none was found
  const std::filesystem::path& path() const { return path_; }

 private:
  std::string fingerprint_, json_;
  std::filesystem::path first_, path_;
};

// Fills in what the tokenizer of the token files decides, and checks that each token has a row in the vocabulary.
void fit_tokens(config::Resolved& resolved, const DataFiles& opened) {
  const config::Settings& s = resolved.settings;
  if (!opened.tokenizer_json.empty()) {
    const auto tokenizer = text::parse_tokenizer(opened.tokenizer_json, opened.tokenizer_path.string());
    config::fill_from_tokenizer(resolved, tokenizer->vocab_size(), evaluate::ids_of(*tokenizer));
  } else if (s.model.vocab == 0) {
    throw base::UserError("config", "no tokenizer.json beside \"{}\": set model.vocab to the size of its vocabulary",
                          s.data.train[0].path);
  }
  const auto check = [&](const Opened& file) {
    data::require_vocabulary(*file.file.tokens, file.summary, s.model.vocab);
  };
  for (const Opened& train : opened.train) check(train);
  for (const Opened& validation : opened.validation) check(validation);
}

// Fills in what the tables of numbers decide.
void fit_numbers(config::Resolved& resolved, const DataFiles& opened) {
  const config::Model& m = resolved.settings.model;
  const bool classes = config::objective(m) == config::Objective::classes;
  const data::NumberTable& train = *opened.train[0].file.numbers;
  const int64_t last = classes || m.outputs == 0 ? 1 : m.outputs;  // columns that are no features
  if (train.columns() <= last)
    throw base::UserError("data", "\"{}\" has {} columns; the last {} is what is learnt, those before it are features",
                          train.path().string(), train.columns(), last == 1 ? "one" : fmt::format("{}", last));
  int64_t outputs = last;
  if (classes) outputs = std::max<int64_t>({train.require_classes(train.columns() - 1, 0), m.outputs, 2});
  config::fill_from_numbers(resolved, train.columns() - last, outputs);
  for (const Opened& validation : opened.validation)
    if (const data::NumberTable& table = *validation.file.numbers; table.columns() != train.columns())
      throw base::UserError("data", "\"{}\" has {} columns, \"{}\" {}; they must be the same", train.path().string(),
                            train.columns(), table.path().string(), table.columns());
}

}  // namespace

DataFiles open_data_files(const config::Resolved& resolved) {
  config::require_data(resolved);
  const config::Settings& s = resolved.settings;
  DataFiles files;
  CommonTokenizer tokenizer;
  for (const config::DataSource& source : s.data.train) {
    files.train.push_back(open(s, source.path, s.data.train_labels, DataRole::train, files.identity));
    files.train.back().file.weight = source.weight;
    tokenizer.add(files.train.back());
  }
  if (s.data.validation.size() > 1 && evaluate::has_labels(s.model))
    throw base::UserError("config",
                          "data.validation has {} files, and data.validation_labels is that of one; name one file",
                          s.data.validation.size());
  for (const config::ValidationFile& file : s.data.validation) {
    files.validation.push_back(open(s, file.path, s.data.validation_labels, DataRole::validation, files.identity));
    tokenizer.add(files.validation.back());
  }
  files.tokenizer_json = tokenizer.json();
  files.tokenizer_path = tokenizer.path();
  if (!files.tokenizer_json.empty())
    files.identity.insert(files.identity.begin(), {DataRole::tokenizer, files.tokenizer_path.string(),
                                                   data::tokenizer_fingerprint(files.tokenizer_json)});
  return files;
}

Corpus make_corpus(config::Resolved& resolved, const DataFiles& opened) {
  const config::Settings& s = resolved.settings;
  Corpus corpus;
  corpus.identity = opened.identity;
  corpus.tokenizer_json = opened.tokenizer_json;
  require_tokenizer_of_samples(s, opened.tokenizer_json);
  evaluate::reads_numbers(s.model) ? fit_numbers(resolved, opened) : fit_tokens(resolved, opened);
  std::vector<evaluate::DataFile> files;
  for (const Opened& train : opened.train) files.push_back(train.file);
  corpus.train = evaluate::training_samples(s, files);
  for (size_t i = 0; i < opened.validation.size(); ++i)
    corpus.validation.push_back(
        {s.data.validation[i].domain, evaluate::evaluation_samples(s, opened.validation[i].file, s.train.sequence)});
  return corpus;
}

Corpus open_corpus(config::Resolved& resolved) {
  return make_corpus(resolved, open_data_files(resolved));
}

}  // namespace kintsugi::train

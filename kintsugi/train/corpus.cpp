#include "kintsugi/train/corpus.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/data/token_summary.h"

namespace kintsugi::train {
namespace {

using Opened = DataFiles::Opened;

// Opens a token file and adds it to the identity.
Opened open(const std::string& path, int64_t threads, DataRole role, DataIdentity& identity) {
  Opened opened = {.file = std::make_shared<const data::TokenFile>(path), .summary = {}};
  opened.summary = data::summarize(*opened.file, static_cast<int>(threads), stderr);
  identity.push_back({role, path, data::checked_fingerprint(*opened.file, opened.summary)});
  return opened;
}

// The tokenizer that made all the files, by what is known of it: the fingerprint beside each file, and the
// tokenizer.json that `prepare` writes into its folder.
class CommonTokenizer {
 public:
  void add(const Opened& opened) {
    const std::filesystem::path prefix = opened.file->prefix(), path = prefix.parent_path() / "tokenizer.json";
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

}  // namespace

DataFiles open_data_files(const config::Resolved& resolved) {
  config::require_data(resolved);
  const config::Settings& s = resolved.settings;
  DataFiles files;
  CommonTokenizer tokenizer;
  for (const config::DataSource& source : s.data.train) {
    files.train.push_back(open(source.path, s.parallel.threads, DataRole::train, files.identity));
    tokenizer.add(files.train.back());
  }
  if (!s.data.validation.empty()) {
    files.validation = open(s.data.validation, s.parallel.threads, DataRole::validation, files.identity);
    tokenizer.add(files.validation);
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
  if (!corpus.tokenizer_json.empty()) {
    config::fill_from_tokenizer(
        resolved, text::parse_tokenizer(corpus.tokenizer_json, opened.tokenizer_path.string())->vocab_size());
  } else if (s.model.vocab == 0) {
    throw base::UserError("config", "no tokenizer.json beside \"{}\": set model.vocab to the size of its vocabulary",
                          s.data.train[0].path);
  }
  const Opened& validation = opened.validation;
  for (const Opened& train : opened.train) data::require_vocabulary(*train.file, train.summary, s.model.vocab);
  if (validation.file) data::require_vocabulary(*validation.file, validation.summary, s.model.vocab);

  std::vector<data::WeightedFile> files;
  for (size_t i = 0; i < opened.train.size(); ++i) {
    files.push_back({opened.train[i].file, s.data.train[i].weight});
    corpus.train_tokens += files.back().file->num_tokens();
  }
  corpus.train = std::make_unique<data::Sampler>(std::move(files),
                                                 data::SamplerOptions{.sequence = s.train.sequence,
                                                                      .seed = s.train.seed,
                                                                      .reset_at_document = s.data.reset_at_document,
                                                                      .vocab_size = s.model.vocab});
  if (validation.file)
    corpus.validation = std::make_unique<data::EvaluationSampler>(
        validation.file,
        data::EvaluationOptions{
            .sequence = s.train.sequence, .reset_at_document = s.data.reset_at_document, .vocab_size = s.model.vocab});
  return corpus;
}

Corpus open_corpus(config::Resolved& resolved) {
  return make_corpus(resolved, open_data_files(resolved));
}

}  // namespace kintsugi::train

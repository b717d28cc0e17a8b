#include "kintsugi/train/corpus.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/data/token_summary.h"

namespace kintsugi::train {
namespace {

// The tokenizer.json that `prepare` writes beside token files; "" where there is none.
std::string tokenizer_beside(const std::filesystem::path& prefix) {
  const std::filesystem::path path = prefix.parent_path() / "tokenizer.json";
  return std::filesystem::exists(path) ? base::read_file(path) : "";
}

std::shared_ptr<const data::TokenFile> open(const std::string& path, const config::Resolved& resolved) {
  auto file = std::make_shared<const data::TokenFile>(path);
  const auto threads = static_cast<int>(resolved.settings.parallel.threads);
  data::require_vocabulary(*file, data::summarize(*file, threads, stderr), resolved.settings.model.vocab);
  return file;
}

}  // namespace

Corpus open_corpus(config::Resolved& resolved) {
  config::require_data(resolved);
  const config::Settings& s = resolved.settings;
  Corpus corpus;
  std::filesystem::path first;  // where the tokenizer was found
  for (const config::DataSource& source : s.data.train) {
    const std::filesystem::path prefix = data::token_prefix(source.path);
    const std::string json = tokenizer_beside(prefix);
    if (!json.empty() && !corpus.tokenizer_json.empty() && json != corpus.tokenizer_json)
      throw base::UserError("data", "\"{}\" and \"{}\" were made with different tokenizers; prepare both with one",
                            first.string(), prefix.string());
    if (!json.empty() && corpus.tokenizer_json.empty()) {
      corpus.tokenizer_json = json;
      first = prefix;
    }
  }
  if (!corpus.tokenizer_json.empty()) {
    config::fill_from_tokenizer(
        resolved,
        text::parse_tokenizer(corpus.tokenizer_json, (first.parent_path() / "tokenizer.json").string())->vocab_size());
  } else if (s.model.vocab == 0) {
    throw base::UserError("config", "no tokenizer.json beside \"{}\": set model.vocab to the size of its vocabulary",
                          s.data.train[0].path);
  }

  std::vector<data::WeightedFile> files;
  for (const config::DataSource& source : s.data.train) {
    files.push_back({open(source.path, resolved), source.weight});
    corpus.train_tokens += files.back().file->num_tokens();
  }
  corpus.train = std::make_unique<data::Sampler>(std::move(files),
                                                 data::SamplerOptions{.sequence = s.train.sequence,
                                                                      .seed = s.train.seed,
                                                                      .reset_at_document = s.data.reset_at_document,
                                                                      .vocab_size = s.model.vocab});
  if (!s.data.validation.empty())
    corpus.validation = std::make_unique<data::EvaluationSampler>(
        open(s.data.validation, resolved),
        data::EvaluationOptions{
            .sequence = s.train.sequence, .reset_at_document = s.data.reset_at_document, .vocab_size = s.model.vocab});
  return corpus;
}

}  // namespace kintsugi::train

#include "kintsugi/corpus/prepare_corpus.h"

#include <algorithm>
#include <memory>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/corpus/corpus_page.h"
#include "kintsugi/data/choose_tokenizer.h"

namespace kintsugi::corpus {

PreparedCorpus prepare_corpus(const Spec& spec, const data::PrepareOptions& options) {
  namespace fs = std::filesystem;
  if (options.output.empty()) throw base::UserError("prepare", "--output names no folder");
  const fs::path counts = options.output / "counts.json";
  std::error_code error;
  if (fs::exists(counts, error) && !options.force)
    throw base::UserError("prepare", "--output \"{}\" holds a corpus; --force replaces it, or name another folder",
                          options.output.string());
  const data::PassOptions pass = {
      .threads = options.threads > 0 ? options.threads : static_cast<int>(base::usable_cores()),
      .progress = options.progress,
      .stop = options.stop};
  PreparedCorpus prepared;
  prepared.cleaned = clean(spec, options.output / "clean", pass);

  data::PrepareOptions each = options;
  each.field = "text";
  each.skip_bad_lines = 0;
  each.force = true;
  std::vector<data::Corpus> corpora;
  for (const Counts& domain : prepared.cleaned.domains)
    if (domain.documents[0] > 0)
      corpora.push_back(data::list_corpus({.inputs = {domain.file.string()}, .field = "text"}));
  if (corpora.empty()) throw base::UserError("prepare", "no document is left; see the counts above");
  const bool trained = options.tokenizer == "chars" || options.tokenizer.starts_with("bpe:");
  if (trained) {
    std::vector<const data::Corpus*> all;
    for (const data::Corpus& corpus : corpora) all.push_back(&corpus);
    const auto tokenizer = data::choose_tokenizer(all,
                                                  {.name = options.tokenizer,
                                                   .field = "text",
                                                   .learn_bytes = options.learn_bytes,
                                                   .chunk_bytes = options.chunk_bytes},
                                                  pass);
    base::write_file_atomically(options.output / "tokenizer.json", tokenizer->to_json());
    each.tokenizer = (options.output / "tokenizer.json").string();
  }
  for (const Counts& domain : prepared.cleaned.domains) {
    if (domain.documents[0] == 0) continue;
    each.inputs = {domain.file.string()};
    each.output = options.output / domain.domain;
    prepared.domains.push_back({domain.domain, data::prepare(each)});
  }
  if (!trained)
    base::write_file_atomically(options.output / "tokenizer.json",
                                base::read_file(options.output / prepared.domains[0].name / "tokenizer.json"));
  base::write_file_atomically(options.output / "report.html",
                              html_of(prepared.cleaned, spec, options.output.filename().string()));
  base::write_file_atomically(counts, json_of(prepared.cleaned));
  return prepared;
}

}  // namespace kintsugi::corpus

#include "kintsugi/data/split.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/data/documents.h"
#include "kintsugi/data/hash.h"

namespace kintsugi::data {
namespace {

constexpr size_t kFew = 1000;

uint64_t hash_of(uint64_t seed, uint64_t document) {
  return mix(seed, document);
}

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// The first nonempty documents: more than kFew, if there are. `only` receives the text of a JSONL corpus with a single
// document.
std::vector<uint64_t> first_documents(const Corpus& corpus, const SplitOptions& options, std::string& only) {
  std::vector<uint64_t> documents;
  if (!corpus.files.front().jsonl) {
    for (size_t i = 0; i < corpus.files.size() && documents.size() <= kFew; ++i) {
      if (corpus.files[i].bytes > 0) documents.push_back(i);
    }
    return documents;
  }
  CorpusReader reader(corpus, {.chunk_bytes = 64 << 10});
  Lines lines(options.field, options.skip_bad_lines);
  Chunk chunk;
  while (documents.size() <= kFew && reader.next(chunk)) {
    for_each_part(corpus, chunk, lines, [&](const TextPart& part) {
      if (part.text.empty()) return;
      if (documents.empty()) only = part.text;
      documents.push_back(part.document);
    });
  }
  return documents;
}

// The byte at which character int(characters * (1 - validation)) begins.
uint64_t find_position(const Corpus& corpus, double validation, const PassOptions& pass) {
  struct Count {
    uint64_t bytes = 0;
    uint64_t characters = 0;
  };
  std::vector<Count> counts;  // per chunk
  Count all;
  corpus_pass<Count>(
      corpus, {.rule = CutRule::kByte}, {.threads = pass.threads, .progress = nullptr, .stop = pass.stop}, "",
      [](const Chunk& chunk, int) {
        const auto characters = std::count_if(chunk.text.begin(), chunk.text.end(), begins_character);
        return Count{chunk.text.size(), static_cast<uint64_t>(characters)};
      },
      [&](Count&& count) {
        counts.push_back(count);
        all = {all.bytes + count.bytes, all.characters + count.characters};
      });
  const auto target = static_cast<uint64_t>(static_cast<double>(all.characters) * (1.0 - validation));
  if (target == 0 || target >= all.characters) {
    throw base::UserError("prepare",
                          "\"{}\" has {} characters, too few to reserve {} of them for validation; add text, or set "
                          "--validation-text or --validation 0",
                          corpus.files[0].path.string(), all.characters, validation);
  }
  Count before;
  size_t chunk = 0;
  while (before.characters + counts[chunk].characters <= target) {
    before = {before.bytes + counts[chunk].bytes, before.characters + counts[chunk].characters};
    ++chunk;
  }
  std::string text;
  InputFile(corpus.files[0], before.bytes).read(counts[chunk].bytes, text);
  uint64_t seen = before.characters;  // characters beginning before text[at]
  for (size_t at = 0; at < text.size(); ++at) {
    if (begins_character(text[at]) && seen++ == target) return before.bytes + at;
  }
  throw base::UserError("prepare", "\"{}\" changed while it was read; try again when it is still",
                        corpus.files[0].path.string());
}

}  // namespace

bool Split::is_validation(uint64_t document) const {
  if (position) return document == 1;
  return hash_of(seed, document) < threshold;
}

Split plan_split(Corpus& corpus, const SplitOptions& options, const PassOptions& pass) {
  if (!(options.validation >= 0.0 && options.validation < 1.0)) {
    throw base::UserError("prepare",
                          "--validation {} is not a fraction of the documents: at least 0 and below 1, such as 0.1",
                          options.validation);
  }
  std::string only;
  const std::vector<uint64_t> documents = first_documents(corpus, options, only);
  if (documents.empty()) {
    throw base::UserError("prepare", "the corpus is empty: {} file{} without a character of text", corpus.files.size(),
                          corpus.files.size() == 1 ? "" : "s");
  }
  Split split;
  split.seed = options.seed;
  split.single_document = documents.size() == 1;
  if (options.validation == 0.0) return split;
  if (split.single_document) {
    CorpusFile file = corpus.files[corpus.files.front().jsonl ? 0 : documents[0]];
    if (file.jsonl) {
      file.jsonl = false;
      file.bytes = only.size();
      file.content = std::make_shared<const std::string>(std::move(only));
    }
    corpus.files = {file};
    corpus.bytes = file.bytes;
    split.position = find_position(corpus, options.validation, pass);
    return split;
  }
  if (documents.size() > kFew) {
    split.threshold = static_cast<uint64_t>(std::ldexp(options.validation, 64));
    return split;
  }
  std::vector<uint64_t> hashes;
  for (const uint64_t document : documents) hashes.push_back(hash_of(options.seed, document));
  std::sort(hashes.begin(), hashes.end());
  const auto share = std::llround(options.validation * static_cast<double>(hashes.size()));
  split.threshold = hashes[std::clamp<size_t>(static_cast<size_t>(share), 1, hashes.size() - 1)];
  return split;
}

}  // namespace kintsugi::data

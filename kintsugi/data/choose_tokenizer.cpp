#include "kintsugi/data/choose_tokenizer.h"

#include <charconv>
#include <filesystem>

#include "kintsugi/base/error.h"
#include "kintsugi/data/documents.h"
#include "kintsugi/data/hash.h"
#include "kintsugi/text/bytes_tokenizer.h"
#include "kintsugi/text/chars_tokenizer.h"
#include "kintsugi/text/train_bpe.h"
#include "kintsugi/text/word_counter.h"

namespace kintsugi::data {
namespace {

constexpr std::string_view kBpe = "bpe:";

struct Nothing {};

int32_t parse_size(const std::string& name) {
  const char* begin = name.data() + kBpe.size();
  const char* end = name.data() + name.size();
  int32_t size = 0;
  const auto [stop, error] = std::from_chars(begin, end, size);
  if (error == std::errc() && stop == end && size > 0) return size;
  throw base::UserError("prepare", "--tokenizer {}: after \"bpe:\" comes the size of the vocabulary, such as bpe:8192",
                        name);
}

// Calls f(part, thread) for all text of all corpora, in no particular order.
template <typename F>
void read_all(const std::vector<const Corpus*>& corpora, const TokenizerChoice& choice, const PassOptions& pass,
              CutRule rule, F&& f) {
  for (const Corpus* corpus : corpora) {
    Lines lines(choice.field, choice.skip_bad_lines);
    corpus_pass<Nothing>(
        *corpus, {.chunk_bytes = choice.chunk_bytes, .rule = rule}, pass, "learning the tokenizer",
        [&](const Chunk& chunk, int thread) {
          for_each_part(*corpus, chunk, lines, [&](const TextPart& part) { f(chunk, part, thread); });
          return Nothing();
        },
        [](Nothing&&) {});
  }
}

std::unique_ptr<text::Tokenizer> learn_chars(const std::vector<const Corpus*>& corpora, const TokenizerChoice& choice,
                                             const PassOptions& pass) {
  std::vector<text::CharacterCollector> collectors(static_cast<size_t>(pass.threads));
  read_all(corpora, choice, pass, CutRule::kCharacter, [&](const Chunk&, const TextPart& part, int thread) {
    collectors[static_cast<size_t>(thread)].add(part.text, part.where);
  });
  for (size_t t = 1; t < collectors.size(); ++t) collectors[0].merge(collectors[t]);
  return text::make_chars_tokenizer(collectors[0].characters(), choice.end_of_text);
}

std::unique_ptr<text::Tokenizer> learn_bpe(const std::vector<const Corpus*>& corpora, const TokenizerChoice& choice,
                                           const PassOptions& pass) {
  const int32_t size = parse_size(choice.name);
  uint64_t total = 0;
  for (const Corpus* corpus : corpora) total += corpus->bytes;
  std::vector<text::WordCounter> counters(static_cast<size_t>(pass.threads));
  read_all(corpora, choice, pass, CutRule::kWord, [&](const Chunk& chunk, const TextPart& part, int thread) {
    // Memory is proportional to the number of distinct words, so sample very large corpora by chunk.
    const Piece& first = chunk.pieces.front();
    if (multiply_high(mix(first.file, first.offset), total) >= choice.learn_bytes) return;
    counters[static_cast<size_t>(thread)].add(part.text);
  });
  for (size_t t = 1; t < counters.size(); ++t) counters[0].merge(std::move(counters[t]));
  Progress progress(pass.progress, "merging", static_cast<uint64_t>(size), ProgressUnit::merges);
  return text::train_bpe(counters[0], size, [&](int32_t done, int32_t all) {
    throw_if_stopped(pass);
    if (done < all) progress.show(static_cast<uint64_t>(done));
  });
}

}  // namespace

std::unique_ptr<text::Tokenizer> choose_tokenizer(const std::vector<const Corpus*>& corpora,
                                                  const TokenizerChoice& choice, const PassOptions& pass) {
  if (choice.name == "bytes") return text::make_bytes_tokenizer();
  if (choice.name == "chars") return learn_chars(corpora, choice, pass);
  if (choice.name.starts_with(kBpe)) return learn_bpe(corpora, choice, pass);
  if (!std::filesystem::exists(choice.name)) {
    throw base::UserError("prepare", "--tokenizer {} is neither bytes, chars, bpe:N, nor a file or folder",
                          choice.name);
  }
  return text::load_tokenizer(choice.name);
}

}  // namespace kintsugi::data

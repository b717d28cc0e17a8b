#include "kintsugi/data/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/data/choose_tokenizer.h"
#include "kintsugi/data/corpus.h"
#include "kintsugi/data/corpus_pass.h"
#include "kintsugi/data/documents.h"
#include "kintsugi/data/output_folder.h"
#include "kintsugi/data/split.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/data/token_writer.h"
#include "kintsugi/text/declared_tokens.h"

namespace kintsugi::data {
namespace {

namespace fs = std::filesystem;

// A chunk's ids, and the ends of documents among them.
struct Encoded {
  struct Part {
    size_t end = 0;
    uint64_t document = 0;
    bool ends_document = true;
    bool clipped = false;
  };
  std::vector<int32_t> ids;
  std::vector<Part> parts;
};

// Whether a piece of a plain file continues the document of the previous one. Another document begins at `split_at`.
bool continues(const Piece& piece, std::optional<uint64_t> split_at) {
  return piece.offset > 0 && piece.offset != split_at;
}

Encoded encode_chunk(const text::Tokenizer& tokenizer, const Corpus& corpus, const Chunk& chunk, Lines& lines,
                     std::optional<uint64_t> split_at) {
  Encoded encoded;
  encoded.ids.reserve(chunk.text.size() / 3);
  size_t num_parts = 0;
  for_each_part(corpus, chunk, lines, [&](const TextPart& part) {
    const size_t number = num_parts++;  // each piece of a plain file is one part; with a field, each line is a document
    try {
      if (lines.field().empty() && continues(chunk.pieces[number], split_at)) {
        tokenizer.encode_continued(part.text, encoded.ids);
      } else {
        tokenizer.encode(part.text, encoded.ids);
      }
    } catch (const base::UserError& error) {
      const std::string_view what = error.what();
      const size_t at = what.find("] ");  // replace the tokenizer's [where] by ours
      throw base::UserError("prepare", "{}: {}", part.where, at == what.npos ? what : what.substr(at + 2));
    }
    encoded.parts.push_back({encoded.ids.size(), part.document, part.ends_document, part.clipped});
  });
  return encoded;
}

// Distributes documents to the two writers.
class Dealer {
 public:
  Dealer(TokenWriter& train, TokenWriter* validation, const text::Tokenizer& tokenizer)
      : train_(train),
        validation_(validation),
        begin_(tokenizer.begin_of_document()),
        end_of_text_(tokenizer.end_of_text()) {}

  template <typename IsValidation>
  void deal(const Encoded& encoded, IsValidation&& is_validation) {
    size_t begin = 0;
    for (const Encoded::Part& part : encoded.parts) {
      TokenWriter& writer = validation_ && is_validation(part.document) ? *validation_ : train_;
      if (begin_ && in_document_ == 0 && part.end > begin) writer.append(std::span(&*begin_, 1));
      writer.append(std::span(encoded.ids).subspan(begin, part.end - begin));
      in_document_ += part.end - begin;
      begin = part.end;
      if (part.ends_document) end_document(writer, part.clipped);
    }
  }

  uint64_t empty_documents() const { return empty_documents_; }

 private:
  void end_document(TokenWriter& writer, bool clipped) {
    if (in_document_ == 0) {
      ++empty_documents_;
      return;
    }
    if (end_of_text_ && !clipped) writer.append(std::span(&*end_of_text_, 1));
    writer.end_document();
    in_document_ = 0;
  }

  TokenWriter& train_;
  TokenWriter* validation_;
  std::optional<int32_t> begin_, end_of_text_;
  uint64_t in_document_ = 0;  // tokens
  uint64_t empty_documents_ = 0;
};

void add_notes(const Corpus& corpus, std::vector<std::string>& notes) {
  const auto note = [&](uint64_t count, std::string_view what) {
    if (count > 0) notes.push_back(fmt::format("{} {}", base::group_digits(static_cast<int64_t>(count)), what));
  };
  note(corpus.skipped_binary, "skipped: binary files (a NUL in the first 8 KiB, or archives)");
  note(corpus.skipped_hidden, "skipped: hidden files and folders");
  note(corpus.skipped_duplicates, "skipped: files named twice");
  note(corpus.skipped_excluded, "left out of the training text: files of the validation text");
  note(corpus.skipped_other, "skipped: not regular files, links to folders, or with --field not *.jsonl");
}

void add_notes(const Lines& lines, std::vector<std::string>& notes) {
  const auto count = [](uint64_t n) { return base::group_digits(static_cast<int64_t>(n)); };
  if (lines.bad() > 0)
    notes.push_back(fmt::format("{} bad line{} skipped; the first: {}", count(lines.bad()), lines.bad() == 1 ? "" : "s",
                                lines.a_bad_line()));
  if (const uint64_t n = lines.repairs().numbers; n > 0)
    notes.push_back(fmt::format("{} NaN or infinit{} in lines, read as null", count(n), n == 1 ? "y" : "ies"));
  if (const uint64_t n = lines.repairs().surrogates; n > 0)
    notes.push_back(fmt::format("{} surrogate{} without another half, read as U+FFFD", count(n), n == 1 ? "" : "s"));
}

Corpus list_validation(const PrepareOptions& options) {
  // A plain text may be combined with a JSONL corpus.
  std::error_code error;
  const fs::file_status status = fs::status(options.validation_text, error);
  const bool plain = (fs::is_regular_file(status) || fs::is_fifo(status)) && !is_jsonl_name(options.validation_text);
  return list_corpus({.inputs = {options.validation_text},
                      .field = plain ? "" : options.field,
                      .exclude = options.output,
                      .stop = options.stop});
}

// Refuses to overwrite a text of the input.
void refuse_texts_as_output(const fs::path& output, const std::vector<const Corpus*>& corpora) {
  for (const std::string& name : output_names()) {
    std::error_code error;
    const fs::path path = output / name, real = fs::canonical(path, error);
    if (error) continue;
    for (const Corpus* corpus : corpora)
      if (canonical_paths(*corpus).contains(real.string()))
        throw base::UserError("prepare", "\"{}\" is an input, and the output would replace it; name another --output",
                              path.string());
  }
}

// Refuses to overwrite the tokenizer in use, except with identical bytes.
void refuse_tokenizer_as_output(const PrepareOptions& options, const std::string& json) {
  std::error_code error;
  const fs::path path = options.output / "tokenizer.json";
  const bool same =
      fs::equivalent(options.tokenizer, path, error) || fs::equivalent(options.tokenizer, options.output, error);
  if (!same || !fs::exists(path, error) || base::read_file(path) == json) return;
  throw base::UserError("prepare",
                        "--tokenizer \"{}\" is written in another form than that in which the output would replace it; "
                        "name another --output",
                        path.string());
}

// With the tokens that the options name.
std::unique_ptr<text::Tokenizer> with_document_tokens(std::unique_ptr<text::Tokenizer> tokenizer,
                                                      const PrepareOptions& options) {
  const auto find = [&](std::string_view option, const std::string& token) -> std::optional<int32_t> {
    if (token.empty()) return std::nullopt;
    const auto id = text::find_token(*tokenizer, token);
    if (!id) throw base::UserError("prepare", "{} {}: the tokenizer has no such token", option, base::in_quotes(token));
    return id;
  };
  text::DeclaredTokens declared;
  declared.end = find("--document-end", options.document_end);
  declared.begin = find("--document-begin", options.document_begin);
  if (declared.empty()) return tokenizer;
  // Keep the tokenizer's own declarations.
  const auto before = tokenizer->begin_of_document();
  if (!declared.begin) declared.begin = before;
  declared.stops = tokenizer->stops();
  if (declared.end && std::ranges::find(declared.stops, *declared.end) == declared.stops.end())
    declared.stops.push_back(*declared.end);
  declared.around = tokenizer->special_tokens();
  if (declared.begin) declared.around->before = {*declared.begin};
  if (!declared.end) declared.end = tokenizer->end_of_text();
  const std::string kind = tokenizer->kind();
  if (kind == "bytes" || kind == "chars" || kind == "sentencepiece")
    throw base::UserError("prepare",
                          "--document-end and --document-begin take a tokenizer.json of Hugging Face's form");
  return text::with_declared(std::move(tokenizer), std::move(declared));
}

}  // namespace

PrepareResult prepare(const PrepareOptions& options) {
  const bool own_validation = !options.validation_text.empty();
  if (own_validation && options.validation) {
    throw base::UserError("prepare",
                          "--validation and --validation-text exclude each other: the validation text is "
                          "either a share of the corpus or a separate text");
  }
  if (options.output.empty()) throw base::UserError("prepare", "--output names no folder");
  const PassOptions pass = {.threads = options.threads > 0 ? options.threads : static_cast<int>(base::usable_cores()),
                            .progress = options.progress,
                            .stop = options.stop};
  const auto from_standard_input = std::ranges::count(options.inputs, kStandardInput);
  if (own_validation && options.validation_text == kStandardInput && from_standard_input > 0)
    throw base::UserError("prepare", "the standard input is read once; it is the text or the validation text");
  if (from_standard_input > 1)
    throw base::UserError("prepare", "the standard input is read once, and \"-\" is given {} times",
                          from_standard_input);
  Corpus validation_corpus;
  if (own_validation) validation_corpus = list_validation(options);
  Corpus corpus = list_corpus({.inputs = options.inputs,
                               .field = options.field,
                               .exclude = options.output,
                               .stop = options.stop,
                               .exclude_files = canonical_paths(validation_corpus)});
  refuse_texts_as_output(options.output, {&corpus, &validation_corpus});
  require_texts(corpus);
  require_texts(validation_corpus);
  OutputFolder folder(options.output, options.force);
  PrepareResult result;
  result.files = corpus.files.size() + validation_corpus.files.size();
  result.bytes = corpus.bytes_on_disk + validation_corpus.bytes_on_disk;
  add_notes(corpus, result.notes);

  const double share = options.validation.value_or(own_validation ? 0.0 : 0.1);
  const Split split = plan_split(
      corpus,
      {.validation = share, .seed = options.seed, .field = options.field, .skip_bad_lines = options.skip_bad_lines},
      pass);
  result.split_by_position = split.position.has_value();
  result.has_validation = own_validation || share > 0.0;

  std::vector<const Corpus*> corpora = {&corpus};
  if (own_validation) corpora.push_back(&validation_corpus);
  std::unique_ptr<text::Tokenizer> tokenizer = choose_tokenizer(corpora,
                                                                {.name = options.tokenizer,
                                                                 .field = options.field,
                                                                 .skip_bad_lines = options.skip_bad_lines,
                                                                 .end_of_text = !split.single_document,
                                                                 .learn_bytes = options.learn_bytes,
                                                                 .chunk_bytes = options.chunk_bytes},
                                                                pass);
  tokenizer = with_document_tokens(std::move(tokenizer), options);
  if (!tokenizer->end_of_text() && !split.single_document)
    result.notes.push_back(
        "the tokenizer declares no end of documents, so nothing is between them; --document-end names one");
  const std::string json = tokenizer->to_json();
  refuse_tokenizer_as_output(options, json);
  result.vocab_size = tokenizer->vocab_size();
  result.tokenizer_kind = tokenizer->kind();

  const TokenWriterOptions writer_options = {.vocab_size = tokenizer->vocab_size(),
                                             .tokenizer = tokenizer_fingerprint(json)};
  TokenWriter train(folder.part() / "train", writer_options);
  std::optional<TokenWriter> validation;
  if (result.has_validation) validation.emplace(folder.part() / "validation", writer_options);
  Dealer dealer(train, validation ? &*validation : nullptr, *tokenizer);
  const auto encode = [&](const Corpus& from, std::optional<uint64_t> position, const std::string& what,
                          auto&& is_validation) {
    Lines lines(options.field, options.skip_bad_lines);
    const ReaderOptions reader = {.chunk_bytes = options.chunk_bytes,
                                  .rule = cut_rule_of(tokenizer->kind()),
                                  .tokenizer = tokenizer.get(),
                                  .split_at = position};
    corpus_pass<Encoded>(
        from, reader, pass, what,
        [&, position](const Chunk& chunk, int) { return encode_chunk(*tokenizer, from, chunk, lines, position); },
        [&](Encoded&& encoded) { dealer.deal(encoded, is_validation); });
    add_notes(lines, result.notes);
  };
  encode(corpus, split.position, "tokenizing", [&](uint64_t document) { return split.is_validation(document); });
  if (own_validation) encode(validation_corpus, {}, "tokenizing the validation text", [](uint64_t) { return true; });

  result.train = {train.num_tokens(), train.num_documents()};
  result.empty_documents = dealer.empty_documents();
  if (validation) result.validation = {validation->num_tokens(), validation->num_documents()};
  if (train.num_tokens() == 0 || (validation && validation->num_tokens() == 0)) {
    throw base::UserError("prepare", "no text is left for {}: {} documents, a share of {} for validation",
                          train.num_tokens() == 0 ? "training" : "validation",
                          train.num_documents() + result.validation.documents, share);
  }
  train.finish();
  if (validation) validation->finish();
  throw_if_stopped(pass);
  base::write_file_atomically(folder.part() / "tokenizer.json", json);
  if (validation) validation->publish();
  train.publish();
  folder.publish();
  return result;
}

}  // namespace kintsugi::data

// Text to ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::text {

// What a model of this tokenizer expects around a text, such as <s> before it. Encoding adds none of them.
struct SpecialTokens {
  std::vector<int32_t> before, after;
};

// Const use is thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of `text`, which may contain any bytes. Throws UserError if the tokenizer cannot represent them
  // (chars).
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  // The same for text that continues another, cut before white space: adds nothing before the first word.
  virtual void encode_continued(std::string_view text, std::vector<int32_t>& ids) const { encode(text, ids); }
  // The bytes of `ids`; throws UserError, stating the id, for one outside the vocabulary.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  virtual int32_t vocab_size() const = 0;
  // The id that ends a document, if the vocabulary has one.
  virtual std::optional<int32_t> end_of_text() const = 0;
  // The id that begins documents of a corpus, if any.
  virtual std::optional<int32_t> begin_of_document() const { return std::nullopt; }
  // Each of these ends a generated text.
  virtual std::vector<int32_t> stops() const {
    const auto end = end_of_text();
    return end ? std::vector<int32_t>{*end} : std::vector<int32_t>{};
  }
  virtual SpecialTokens special_tokens() const { return {}; }
  // The id of a token with this text that the encoder never produces from text: "</s>" of SentencePiece.
  virtual std::optional<int32_t> control_token(std::string_view) const { return std::nullopt; }
  // The text of such a token; null for any other id.
  virtual std::optional<std::string> control_text(int32_t) const { return std::nullopt; }
  // "bytes", "chars", "bpe", "unigram", "wordpiece", "wordlevel", "sentencepiece"
  virtual std::string kind() const = 0;
  // The content of the `tokenizer.json` that load_tokenizer reads back.
  virtual std::string to_json() const = 0;

  std::vector<int32_t> encode(std::string_view text) const {
    std::vector<int32_t> ids;
    encode(text, ids);
    return ids;
  }
};

// `path` is a tokenizer.json, a SentencePiece model (`NAME.model`), or a folder containing a tokenizer.json, or
// `encoder.json` + `vocab.bpe`, or `vocab.json` + `merges.txt`, or `tokenizer.model`, or `spiece.model`, or
// `tekken.json`, or `vocab.txt`, or one `NAME.tiktoken`; or any of these files. Throws UserError if it is absent or
// malformed.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);
// The tokenizer of a folder, or null if it contains none of these.
std::unique_ptr<Tokenizer> find_tokenizer(const std::filesystem::path& folder);

// The same from the content of a tokenizer.json; `where` names it in errors.
std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view json, std::string_view where);

}  // namespace kintsugi::text

#include "kintsugi/text/bpe_tokenizer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/text/pre_tokenizer.h"
#include "kintsugi/text/write_bpe_json.h"

namespace kintsugi::text {
namespace {

std::string normalize_all(std::string_view text, const std::vector<NormalForm>& forms) {
  std::string out(text);
  for (const NormalForm form : forms) out = normalize(out, form);
  return out;
}

AddedTokens select(const std::vector<AddedToken>& all, bool normalized, const std::vector<NormalForm>& forms) {
  std::vector<AddedToken> some;
  for (AddedToken token : all) {
    if (token.normalized != normalized) continue;
    if (normalized) token.content = normalize_all(token.content, forms);
    some.push_back(std::move(token));
  }
  return AddedTokens(std::move(some));
}

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeDefinition definition)
      : definition_(std::move(definition)),
        model_(definition_.model),
        words_(definition_.patterns),
        raw_added_(select(definition_.added, false, definition_.normal_forms)),
        normalized_added_(select(definition_.added, true, definition_.normal_forms)),
        tokens_(definition_.model.tokens) {
    for (const auto& [id, text] : definition_.unspelled) tokens_[id] = text;
    for (const AddedToken& token : definition_.added) {
      if (tokens_.size() <= static_cast<size_t>(token.id)) tokens_.resize(token.id + 1);
      tokens_[token.id] = token.content;
    }
    if (definition_.json.empty()) definition_.json = write_bpe_json(definition_);
    definition_.model = {};  // the model has its own representation
  }

  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override { encode_at(text, false, ids); }
  void encode_continued(std::string_view text, std::vector<int32_t>& ids) const override { encode_at(text, true, ids); }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocab_size()) {
        throw base::UserError("tokenizer", "{}: id {} is not in the vocabulary; ids are 0 to {}", definition_.where, id,
                              vocab_size() - 1);
      }
      text += tokens_[id];
    }
    return text;
  }

  int32_t vocab_size() const override { return static_cast<int32_t>(tokens_.size()); }
  std::optional<int32_t> end_of_text() const override { return find_end_of_text(definition_.added); }
  std::string kind() const override { return "bpe"; }
  std::string to_json() const override { return definition_.json; }
  SpecialTokens special_tokens() const override { return definition_.special; }

 private:
  void encode_at(std::string_view text, bool continued, std::vector<int32_t>& ids) const {
    const char* begin = text.data();
    raw_added_.split(
        text, [&](std::string_view part) { encode_raw(part, continued && part.data() == begin, ids); },
        [&](int32_t id) { ids.push_back(id); });
  }

  void encode_raw(std::string_view text, bool continued, std::vector<int32_t>& ids) const {
    std::string normal;
    for (const NormalForm form : definition_.normal_forms) {
      if (is_surely_normal(text, form)) continue;
      normal = normalize(text, form);
      text = normal;
    }
    const char* begin = text.data();
    normalized_added_.split(
        text, [&](std::string_view part) { encode_normal(part, continued && part.data() == begin, ids); },
        [&](int32_t id) { ids.push_back(id); });
  }

  void encode_normal(std::string_view text, bool continued, std::vector<int32_t>& ids) const {
    std::string prefixed;
    if (definition_.add_prefix_space && !continued && !text.starts_with(' ')) {
      prefixed.reserve(text.size() + 1);
      prefixed.push_back(' ');
      prefixed += text;
      text = prefixed;
    }
    words_.split(text, [&](std::string_view word) {
      if (!model_.encode_word(word, ids)) refuse(word);
    });
  }

  [[noreturn]] void refuse(std::string_view word) const {
    std::vector<int32_t> ids;
    const auto unknown = std::find_if(word.begin(), word.end(),
                                      [&](char byte) { return !model_.encode_word(std::string_view(&byte, 1), ids); });
    base::require(unknown != word.end(), "tokenizer", "a word of {} bytes was refused without a reason", word.size());
    throw base::UserError("tokenizer",
                          "{}: the text has byte 0x{:02x}, for which the vocabulary has no token; make the text valid "
                          "UTF-8, or take a tokenizer with all 256 bytes (bytes, GPT-2's, one trained here)",
                          definition_.where, static_cast<uint8_t>(*unknown));
  }

  BpeDefinition definition_;
  BpeModel model_;
  PreTokenizer words_;
  AddedTokens raw_added_;
  AddedTokens normalized_added_;
  std::vector<std::string> tokens_;  // [id], as bytes
};

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeDefinition definition) {
  return std::make_unique<BpeTokenizer>(std::move(definition));
}

}  // namespace kintsugi::text

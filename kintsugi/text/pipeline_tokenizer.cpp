#include "kintsugi/text/pipeline_tokenizer.h"

#include <unordered_map>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/added_tokens.h"
#include "kintsugi/text/byte_symbols.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/normalizer.h"
#include "kintsugi/text/post_processor.h"
#include "kintsugi/text/token_decoder.h"
#include "kintsugi/text/token_model.h"
#include "kintsugi/text/utf8.h"
#include "kintsugi/text/word_splitter.h"

namespace kintsugi::text {
namespace {

using base::Json;

AddedTokens select(const std::vector<AddedToken>& all, bool normalized, const Normalizer* normalizer) {
  std::vector<AddedToken> some;
  for (AddedToken token : all) {
    if (token.normalized != normalized) continue;
    if (normalized && normalizer) normalizer->apply(token.content, Place::kBegin);
    if (!token.content.empty()) some.push_back(std::move(token));
  }
  return AddedTokens(std::move(some));
}

template <typename Part>
std::unique_ptr<Part> read_optional(const Json& document, std::string_view key,
                                    std::unique_ptr<Part> (*read)(const Json&)) {
  const auto part = find_part(document, key);
  return part ? read(*part) : nullptr;
}

std::vector<AddedToken> read_numbered(const Json& document, const std::vector<std::string>& model_tokens) {
  std::vector<AddedToken> added = read_added_tokens(document);
  std::unordered_map<std::string_view, int32_t> ids;
  for (const AddedToken& token : added) ids.emplace(token.content, -1);
  for (size_t id = 0; id < model_tokens.size(); ++id)
    if (const auto found = ids.find(model_tokens[id]); found != ids.end()) found->second = static_cast<int32_t>(id);
  const Json vocabulary = document.at("model").at("vocab");
  const size_t count = vocabulary.is_list() ? vocabulary.list().size() : vocabulary.members().size();
  std::vector<AddedToken> numbered = added;  // `ids` refers to the texts of `added`
  number_added_tokens(numbered, count, [&](const std::string& token) { return ids.at(token); });
  return numbered;
}

class PipelineTokenizer final : public Tokenizer {
 public:
  PipelineTokenizer(const Json& document, std::string_view content, std::string_view where)
      : json_(content),
        where_(where),
        normalizer_(read_optional(document, "normalizer", read_normalizer)),
        splitter_(read_optional(document, "pre_tokenizer", read_word_splitter)),
        model_(read_token_model(document.at("model"))),
        added_(read_numbered(document, model_->tokens())),
        decoder_(read_optional(document, "decoder", read_token_decoder)),
        special_(read_post_processor(document)),
        raw_added_(select(added_, false, normalizer_.get())),
        normalized_added_(select(added_, true, normalizer_.get())),
        tokens_(model_->tokens()),
        spells_bytes_((normalizer_ && normalizer_->spells_bytes()) || (splitter_ && splitter_->spells_bytes())) {
    add_tokens(document);
    for (const auto* ids : {&special_.before, &special_.after})
      for (const int32_t id : *ids) check_id(id);
  }

  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override { encode_at(text, Place::kBegin, ids); }
  void encode_continued(std::string_view text, std::vector<int32_t>& ids) const override {
    encode_at(text, Place::kContinued, ids);
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const int32_t id : ids) {
      check_id(id);
      tokens.push_back(tokens_[id]);
    }
    if (decoder_) decoder_->apply(tokens);
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && !decoder_) text += ' ';
      text += tokens[i];
    }
    return text;
  }

  int32_t vocab_size() const override { return static_cast<int32_t>(tokens_.size()); }
  std::optional<int32_t> end_of_text() const override { return find_end_of_text(added_); }
  std::string kind() const override { return std::string(model_->kind()); }
  std::string to_json() const override { return json_; }
  SpecialTokens special_tokens() const override { return special_; }

 private:
  void add_tokens(const Json& document) {
    for (const AddedToken& token : added_) {
      const auto id = static_cast<size_t>(token.id);
      if (tokens_.size() <= id) tokens_.resize(id + 1);
      if (id < model_->tokens().size() && !tokens_[id].empty() && tokens_[id] != token.content) {
        document.at("added_tokens")
            .fail("tokens {} and {} have the same id {}; ids must differ", base::in_quotes(tokens_[id]),
                  base::in_quotes(token.content), id);
      }
      tokens_[id] = token.content;
    }
  }

  void check_id(int32_t id) const {
    if (id >= 0 && id < vocab_size()) return;
    throw base::UserError("tokenizer", "{}: id {} is not in the vocabulary; ids are 0 to {}", where_, id,
                          vocab_size() - 1);
  }

  void encode_at(std::string_view text, Place place, std::vector<int32_t>& ids) const {
    const char* begin = text.data();
    raw_added_.split(
        text, [&](std::string_view part) { encode_raw(part, part.data() == begin ? place : Place::kInside, ids); },
        [&](int32_t id) { ids.push_back(id); });
  }

  void encode_raw(std::string_view text, Place place, std::vector<int32_t>& ids) const {
    while (!text.empty()) {
      const size_t valid = count_valid(text);
      if (valid > 0) encode_valid(text.substr(0, valid), place, ids);
      text.remove_prefix(valid);
      place = Place::kContinued;
      const size_t invalid = count_invalid(text);
      if (invalid > 0 && spells_bytes_) {
        model_->encode(spell_bytes(text.substr(0, invalid)), ids);
      } else if (invalid > 0) {
        model_->encode_bytes(text.substr(0, invalid), ids);
      }
      text.remove_prefix(invalid);
    }
  }

  void encode_valid(std::string_view text, Place place, std::vector<int32_t>& ids) const {
    std::string normal;
    if (normalizer_) {
      normal = text;
      normalizer_->apply(normal, place);
      text = normal;
    }
    if (normalized_added_.empty()) {
      if (!text.empty()) encode_normal(text, place, ids);
      return;
    }
    const char* begin = text.data();
    normalized_added_.split(
        text, [&](std::string_view part) { encode_normal(part, part.data() == begin ? place : Place::kInside, ids); },
        [&](int32_t id) { ids.push_back(id); });
  }

  void encode_normal(std::string_view text, Place place, std::vector<int32_t>& ids) const {
    if (!splitter_) return model_->encode(text, ids);
    const TokenModel& model = *model_;
    splitter_->split(text, place, [&](std::string_view word, Place) { model.encode(word, ids); });
  }

  std::string json_, where_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<WordSplitter> splitter_;
  std::unique_ptr<TokenModel> model_;
  std::vector<AddedToken> added_;
  std::unique_ptr<TokenDecoder> decoder_;
  SpecialTokens special_;
  AddedTokens raw_added_, normalized_added_;
  std::vector<std::string> tokens_;
  bool spells_bytes_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_pipeline_json(const Json& document, std::string_view content, std::string_view where) {
  return std::make_unique<PipelineTokenizer>(document, content, where);
}

}  // namespace kintsugi::text

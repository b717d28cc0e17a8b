// tokenizer.json: { "format": "kintsugi-tokenizer", "version": 1, "kind": "sentencepiece", "file": in base64 }
#include "kintsugi/text/sentencepiece_tokenizer.h"

#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/text/base64.h"
#include "kintsugi/text/byte_tokens.h"
#include "kintsugi/text/own_json.h"
#include "kintsugi/text/piece_model.h"
#include "kintsugi/text/replace_pattern.h"
#include "kintsugi/text/sentencepiece_normalizer.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

PrefixTrie make_user_defined(const SentencePieceFile& file) {
  std::vector<std::pair<std::string_view, int32_t>> words;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    if (file.pieces[id].type == PieceType::kUserDefined)
      words.emplace_back(file.pieces[id].text, static_cast<int32_t>(id));
  }
  return PrefixTrie(std::move(words));
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view content, std::string_view where)
      : content_(content),
        where_(where),
        file_(parse_sentencepiece(content, where)),
        user_defined_(make_user_defined(file_)),
        normalizer_(file_, user_defined_, where_),
        model_(make_piece_model(file_, where)) {
    bytes_.fill(-1);
    for (size_t i = 0; i < file_.pieces.size(); ++i) {
      const auto& piece = file_.pieces[i];
      const auto id = static_cast<int32_t>(i);
      if (piece.type == PieceType::kUnknown) unknown_ = id;
      if (piece.type == PieceType::kByte && file_.byte_fallback) bytes_[byte_of_token(piece.text).value()] = id;
      if (piece.type == PieceType::kControl && piece.text == file_.begin_piece) begin_ = id;
      if (piece.type == PieceType::kControl && piece.text == file_.end_piece) end_ = id;
    }
  }

  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override { encode_at(text, Place::kBegin, ids); }
  void encode_continued(std::string_view text, std::vector<int32_t>& ids) const override {
    encode_at(text, Place::kContinued, ids);
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    bool at_begin = file_.add_dummy_prefix || file_.remove_extra_whitespaces;
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocab_size()) {
        throw base::UserError("tokenizer", "{}: id {} is not in the vocabulary; ids are 0 to {}", where_, id,
                              vocab_size() - 1);
      }
      const auto& piece = file_.pieces[id];
      if (piece.type == PieceType::kControl) continue;
      std::string part = piece.text;
      if (piece.type == PieceType::kByte) {
        part.assign(1, static_cast<char>(byte_of_token(piece.text).value()));
      } else if (piece.type == PieceType::kUnknown) {
        part = file_.unknown_text;
      } else {
        if (at_begin && part.starts_with(kSpaceMark)) {
          part.erase(0, kSpaceMark.size());
          // Encoding added one such space; if it removes more, none remains.
          at_begin = file_.remove_extra_whitespaces;
        }
        replace_all(part, kSpaceMark, " ");
      }
      text += part;
      at_begin = at_begin && text.empty();
    }
    return text;
  }

  int32_t vocab_size() const override { return static_cast<int32_t>(file_.pieces.size()); }
  std::optional<int32_t> end_of_text() const override { return end_; }
  // The encoder adds none; Llama, Mistral and Gemma, which use such files, begin each text so.
  SpecialTokens special_tokens() const override {
    return {.before = begin_ ? std::vector<int32_t>{*begin_} : std::vector<int32_t>{}, .after = {}};
  }
  std::optional<int32_t> control_token(std::string_view text) const override {
    for (size_t id = 0; id < file_.pieces.size(); ++id)
      if (file_.pieces[id].type == PieceType::kControl && file_.pieces[id].text == text)
        return static_cast<int32_t>(id);
    return std::nullopt;
  }
  std::optional<std::string> control_text(int32_t id) const override {
    if (id < 0 || id >= vocab_size() || file_.pieces[static_cast<size_t>(id)].type != PieceType::kControl) return {};
    return file_.pieces[static_cast<size_t>(id)].text;
  }
  std::string kind() const override { return "sentencepiece"; }
  std::string to_json() const override {
    base::JsonWriter out(1);
    out.object([&] {
      begin_own_json(out, kind());
      out.key("file").value(write_base64(content_));
    });
    return out.text() + "\n";
  }

 private:
  void encode_at(std::string_view text, Place place, std::vector<int32_t>& ids) const {
    while (!text.empty()) {
      const size_t valid = count_valid(text);
      if (valid > 0) encode_normal(normalizer_.apply(text.substr(0, valid), place), ids);
      text.remove_prefix(valid);
      place = Place::kContinued;
      const size_t invalid = count_invalid(text);
      if (invalid > 0) encode_unknown(text.substr(0, invalid), false, ids);
      text.remove_prefix(invalid);
    }
  }

  // User-defined pieces take precedence over all others and never merge. In Unigram, their scores ensure that, and the
  // sums continue.
  void encode_normal(std::string_view text, std::vector<int32_t>& ids) const {
    thread_local std::vector<PieceSegment> segments;
    segments.clear();
    if (file_.model == SentencePieceModel::kWord || file_.model == SentencePieceModel::kUnigram) {
      model_->segment(text, segments);
    } else {
      size_t begin = 0;
      for (size_t at = 0; at < text.size();) {
        const auto [size, id] = user_defined_.longest(text.substr(at));
        if (size > 0) {
          if (at > begin) model_->segment(text.substr(begin, at - begin), segments);
          segments.push_back({text.substr(at, size), id});
          begin = at + size;
        }
        at += std::max<size_t>(size, 1);
      }
      if (begin < text.size()) model_->segment(text.substr(begin), segments);
    }
    bool after_unknown = false;
    for (const auto& [part, id] : segments) {
      const bool unknown = id < 0;
      if (unknown) {
        encode_unknown(part, after_unknown, ids);
      } else {
        ids.push_back(id);
      }
      after_unknown = unknown;
    }
  }

  // Merges a run of unknown pieces into one.
  void encode_unknown(std::string_view text, bool after_unknown, std::vector<int32_t>& ids) const {
    if (file_.byte_fallback) {
      for (const char byte : text) ids.push_back(bytes_[static_cast<uint8_t>(byte)]);
    } else if (!after_unknown) {
      ids.push_back(unknown_);
    }
  }

  std::string content_, where_;
  SentencePieceFile file_;
  PrefixTrie user_defined_;
  SentencePieceNormalizer normalizer_;
  std::unique_ptr<PieceModel> model_;
  int32_t unknown_ = 0;
  std::array<int32_t, 256> bytes_{};  // -1 if bytes are unknown
  std::optional<int32_t> begin_, end_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view content, std::string_view where) {
  return std::make_unique<SentencePieceTokenizer>(content, where);
}

std::unique_ptr<Tokenizer> read_sentencepiece_json(const base::Json& document, std::string_view where) {
  check_keys(document, {"file"});
  const base::Json file = document.at("file");
  const auto content = read_base64(file.text());
  if (!content) file.fail("\"file\" is not base64");
  return make_sentencepiece_tokenizer(*content, where);
}

}  // namespace kintsugi::text

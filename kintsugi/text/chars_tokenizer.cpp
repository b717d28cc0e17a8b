// tokenizer.json: { "format": "kintsugi-tokenizer", "version": 1, "kind": "chars", "end_of_text": true or false,
//                   "characters": "every character once, in the order of code points" }
#include "kintsugi/text/chars_tokenizer.h"

#include "kintsugi/base/error.h"
#include "kintsugi/text/own_json.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

constexpr char32_t kNumCodes = 0x110000;

class CharsTokenizer final : public Tokenizer {
 public:
  CharsTokenizer(const std::set<char32_t>& characters, bool end_of_text) : has_end_(end_of_text) {
    id_of_.assign(*characters.rbegin() + 1, -1);
    for (const char32_t code : characters) {
      id_of_[code] = num_characters();
      characters_.emplace_back();
      append_character(code, characters_.back());
    }
  }

  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (size_t at = 0; at < text.size();) {
      const Character c = read_character(text.substr(at));
      if (c.size == 0) {
        throw base::UserError("tokenizer", "byte 0x{:02x} at byte {} of the text is not valid UTF-8, which chars needs",
                              static_cast<uint8_t>(text[at]), at);
      }
      const int32_t id = c.code < id_of_.size() ? id_of_[c.code] : -1;
      if (id < 0) {
        throw base::UserError(
            "tokenizer", "the character {} at byte {} of the text is not among the {} characters of the vocabulary",
            describe_character(c.code), at, num_characters());
      }
      ids.push_back(id);
      at += c.size;
    }
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocab_size()) {
        throw base::UserError("tokenizer", "id {} is not in the vocabulary of characters; ids are 0 to {}", id,
                              vocab_size() - 1);
      }
      text += id < num_characters() ? std::string_view(characters_[id]) : kOwnEndOfText;
    }
    return text;
  }

  int32_t vocab_size() const override { return num_characters() + (has_end_ ? 1 : 0); }
  std::optional<int32_t> end_of_text() const override {
    return has_end_ ? std::optional(num_characters()) : std::nullopt;
  }
  std::string kind() const override { return "chars"; }
  std::string to_json() const override {
    std::string all;
    for (const std::string& character : characters_) all += character;
    base::JsonWriter out(1);
    out.object([&] {
      begin_own_json(out, kind());
      out.key("end_of_text").value(has_end_).key("characters").value(all);
    });
    return out.text() + "\n";
  }

 private:
  int32_t num_characters() const { return static_cast<int32_t>(characters_.size()); }

  bool has_end_ = false;
  std::vector<int32_t> id_of_;  // by code point, -1 if none
  std::vector<std::string> characters_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_chars_tokenizer(const std::set<char32_t>& characters, bool end_of_text) {
  base::require(!characters.empty(), "tokenizer", "there are no characters to make a vocabulary of");
  for (const char32_t code : characters) {
    base::require(code < kNumCodes && (code < 0xD800 || code > 0xDFFF), "tokenizer", "U+{:04X} is not a character",
                  static_cast<uint32_t>(code));
  }
  return std::make_unique<CharsTokenizer>(characters, end_of_text);
}

CharacterCollector::CharacterCollector() : seen_(kNumCodes) {}

void CharacterCollector::add(std::string_view text, std::string_view where) {
  for (size_t at = 0; at < text.size();) {
    const Character c = read_character(text.substr(at));
    if (c.size == 0) {
      throw base::UserError("tokenizer",
                            "{}: byte 0x{:02x} at byte {} is not valid UTF-8, which chars needs; take bytes or bpe, or "
                            "convert the text",
                            where, static_cast<uint8_t>(text[at]), at);
    }
    seen_[c.code] = true;
    at += c.size;
  }
}

void CharacterCollector::merge(const CharacterCollector& other) {
  for (char32_t code = 0; code < kNumCodes; ++code) seen_[code] = seen_[code] || other.seen_[code];
}

std::set<char32_t> CharacterCollector::characters() const {
  std::set<char32_t> characters;
  for (char32_t code = 0; code < kNumCodes; ++code) {
    if (seen_[code]) characters.insert(characters.end(), code);
  }
  return characters;
}

std::unique_ptr<Tokenizer> read_chars_json(const base::Json& document) {
  check_keys(document, {"end_of_text", "characters"});
  const bool end_of_text = document.at("end_of_text").boolean();
  const base::Json all = document.at("characters");
  std::string_view rest = all.text();
  if (rest.empty()) all.fail("\"characters\" is empty");
  std::set<char32_t> characters;
  while (!rest.empty()) {
    const Character c = read_character(rest);
    base::require(c.size > 0, "tokenizer", "the JSON reader accepted bytes that are not UTF-8");
    if (!characters.empty() && c.code <= *characters.rbegin()) {
      all.fail("in \"characters\", {} comes after {}; code points must rise", describe_character(c.code),
               describe_character(*characters.rbegin()));
    }
    characters.insert(characters.end(), c.code);
    rest.remove_prefix(c.size);
  }
  return make_chars_tokenizer(characters, end_of_text);
}

}  // namespace kintsugi::text

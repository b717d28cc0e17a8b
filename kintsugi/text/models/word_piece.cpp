// WordPiece (Wu et al. 2016, section 4.1; as in BERT): { "vocab": { token: id }, "unk_token": "[UNK]",
// "continuing_subword_prefix": "##", "max_input_chars_per_word": 100 }. Greedily takes the longest token from the left;
// tokens that do not begin the word have the prefix. A word that cannot be covered is unknown as a whole.
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/models/rows.h"
#include "kintsugi/text/prefix_trie.h"
#include "kintsugi/text/vocabulary.h"
#include "kintsugi/text/word_table.h"

namespace kintsugi::text {
namespace {

// Tokens that begin with `prefix`, without it.
PrefixTrie make_trie(const Vocabulary& vocabulary, std::string_view prefix) {
  std::vector<std::pair<std::string_view, int32_t>> words;
  for (const auto& [token, id] : vocabulary.ids)
    if (token.size() > prefix.size() && token.starts_with(prefix))
      words.emplace_back(std::string_view(token).substr(prefix.size()), id);
  return PrefixTrie(std::move(words));
}

std::string prefix_of(const base::Json& model) {
  const auto prefix = find_part(model, "continuing_subword_prefix");
  return std::string(prefix ? prefix->text() : "##");
}

class WordPiece final : public TokenModel {
 public:
  explicit WordPiece(const base::Json& model)
      : vocabulary_(read_vocabulary(model.at("vocab"))),
        unknown_(find_token(model, "unk_token", vocabulary_)),
        begins_(make_trie(vocabulary_, "")),
        continues_(make_trie(vocabulary_, prefix_of(model))),
        words_(vocabulary_.tokens, vocabulary_.ids.size()) {
    const auto most = find_part(model, "max_input_chars_per_word");
    if (most) most_characters_ = static_cast<size_t>(most->whole(0, INT32_MAX));
    for (const auto& [token, id] : vocabulary_.ids)
      if (count_characters(token) <= most_characters_) words_.add(id);
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    if (const int32_t whole = words_.find(word); whole >= 0) return ids.push_back(whole);
    const size_t before = ids.size();
    bool known = word.size() <= most_characters_ || count_characters(word) <= most_characters_;
    for (std::string_view rest = word; known && !rest.empty();) {
      const auto [size, id] = (ids.size() == before ? begins_ : continues_).longest(rest);
      known = id >= 0;
      ids.push_back(id);
      rest.remove_prefix(size);
    }
    if (known) return;
    if (unknown_ < 0) refuse_unknown(word);
    ids.resize(before);
    ids.push_back(unknown_);
  }
  void encode_bytes(std::string_view bytes, std::vector<int32_t>& ids) const override {
    if (unknown_ < 0) refuse_unknown(bytes);
    ids.push_back(unknown_);
  }
  std::string_view kind() const override { return "wordpiece"; }
  const std::vector<std::string>& tokens() const override { return vocabulary_.tokens; }

 private:
  static size_t count_characters(std::string_view text) {
    size_t n = 0;
    for (const char c : text) n += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
    return n;
  }

  Vocabulary vocabulary_;
  int32_t unknown_;
  size_t most_characters_ = 100;
  PrefixTrie begins_, continues_;
  WordTable words_;
};

}  // namespace

std::unique_ptr<TokenModel> read_word_piece(const base::Json& model) {
  return std::make_unique<WordPiece>(model);
}

}  // namespace kintsugi::text

// BPE over characters: { "vocab": { token: id }, "merges": [...], "unk_token", "fuse_unk", "byte_fallback",
// "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix" }. The prefix precedes each character of a word
// except the first; the suffix follows the last.
#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "kintsugi/text/bpe_merger.h"
#include "kintsugi/text/bpe_vocabulary.h"
#include "kintsugi/text/byte_tokens.h"
#include "kintsugi/text/joinable.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/models/rows.h"
#include "kintsugi/text/vocabulary.h"
#include "kintsugi/text/word_cache.h"
#include "kintsugi/text/word_table.h"

namespace kintsugi::text {
namespace {

using base::Json;

constexpr size_t kFewBytes = 64;
constexpr size_t kLongestPart = 1 << 24;  // bounds the memory for a word, and keeps indices within 32 bits

std::string text_of(const Json& model, std::string_view key) {
  const auto part = find_part(model, key);
  return part ? std::string(part->text()) : "";
}

class CharacterBpe final : public TokenModel {
 public:
  explicit CharacterBpe(const Json& model)
      : vocabulary_(read_vocabulary(model.at("vocab"))),
        prefix_(text_of(model, "continuing_subword_prefix")),
        suffix_(text_of(model, "end_of_word_suffix")),
        unknown_(find_token(model, "unk_token", vocabulary_)),
        fuses_unknown_(flag(model, "fuse_unk", false)),
        ignores_merges_(flag(model, "ignore_merges", false)),
        merger_(model.at("merges").list().size()),
        joinable_(model.at("merges").list().size()),
        words_(vocabulary_.tokens, vocabulary_.tokens.size()) {
    if (const auto dropout = find_part(model, "dropout"); dropout && dropout->number() != 0)
      dropout->refuse("null, since dropout makes ids random");
    set_characters();
    bytes_.fill(-1);
    if (flag(model, "byte_fallback", false)) {
      for (int byte = 0; byte < 256; ++byte) bytes_[byte] = vocabulary_.find(byte_token(static_cast<uint8_t>(byte)));
    }
    cuts_ = prefix_.empty() && suffix_.empty();
    for (const std::string& token : vocabulary_.tokens) longest_ = std::max(longest_, token.size());
    set_merges(model.at("merges"));
    set_words();
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    if (ignores_merges_ && word.size() <= longest_) {
      if (const auto found = vocabulary_.ids.find(std::string(word)); found != vocabulary_.ids.end())
        return ids.push_back(found->second);
    }
    WordCache& cache = WordCache::of_thread();
    if (!cuts_) return encode_word(word, cache, ids);
    size_t begin = 0;
    Character previous = read_valid_character(word);
    for (size_t at = previous.size; at < word.size(); at += previous.size) {
      const Character c = read_valid_character(word.substr(at));
      // A character without a token may belong to a run of unknown ones.
      if (!joinable_.find(previous.code, c.code) && characters_[0].find(c.code) >= 0) {
        encode_part(word.substr(begin, at - begin), previous, cache, ids);
        begin = at;
      }
      previous = c;
    }
    encode_part(word.substr(begin), previous, cache, ids);
  }

  void encode_bytes(std::string_view bytes, std::vector<int32_t>& ids) const override {
    for (const char byte : bytes) {
      const int32_t id = bytes_[static_cast<uint8_t>(byte)];
      if (id < 0 && unknown_ < 0) refuse_unknown(bytes);
      ids.push_back(id < 0 ? unknown_ : id);
    }
  }

  std::string_view kind() const override { return "bpe"; }
  const std::vector<std::string>& tokens() const override { return vocabulary_.tokens; }

 private:
  // Characters as tokens, separately for those with the prefix and those with the suffix.
  void set_characters() {
    for (const auto& [token, id] : vocabulary_.ids) {
      for (int form = 0; form < 4; ++form) {
        std::string_view rest = token;
        if (form & 1) {
          if (!rest.starts_with(prefix_)) continue;
          rest.remove_prefix(prefix_.size());
        }
        if (form & 2) {
          if (!rest.ends_with(suffix_)) continue;
          rest.remove_suffix(suffix_.size());
        }
        const Character c = read_character(rest);
        if (c.size > 0 && static_cast<size_t>(c.size) == rest.size()) characters_[form].set(c.code, id);
      }
    }
  }

  void set_merges(const Json& list) {
    uint32_t rank = 0;
    const std::vector<SpelledMerge> merges = read_merges(list, "tokenizer.json");
    std::map<std::pair<int32_t, int32_t>, uint32_t> last;  // of duplicate merges, the last counts
    for (const auto& [left, right] : merges) last[{vocabulary_.find(left), vocabulary_.find(right)}] = rank++;
    rank = 0;
    for (const auto& [left, right] : merges) {
      const auto find = [&](const std::string& token) {
        const int32_t id = vocabulary_.find(token);
        if (id < 0) {
          list.fail("merge {}, {}, needs the token {}, which the vocabulary lacks", rank + 1,
                    base::in_quotes(left + " " + right), base::in_quotes(token));
        }
        return id;
      };
      const int32_t a = find(left), b = find(right);
      const bool marked = !prefix_.empty() && right.starts_with(prefix_);
      const int32_t merged = find(left + (marked ? right.substr(prefix_.size()) : right));
      if (last.at({a, b}) == rank) merger_.add(a, b, merged, rank);
      ++rank;
      joinable_.add(left, right);
      // Tokens that represent characters other than their own.
      for (const int32_t id : {a, b}) {
        const auto byte = byte_of_token(vocabulary_.tokens[id]);
        if (id == unknown_ || (byte && bytes_[*byte] >= 0)) cuts_ = false;
      }
    }
  }

  // Nearly every token results from merging its own characters. Such a word takes a single lookup; determined here
  // once.
  void set_words() {
    if (!suffix_.empty()) return;
    std::vector<int32_t> ids;
    std::vector<int32_t> known;
    for (size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
      ids.clear();
      if (vocabulary_.tokens[id].empty() || !has_characters(vocabulary_.tokens[id])) continue;
      merge(vocabulary_.tokens[id], true, true, ids);
      if (ids.size() == 1 && ids[0] == static_cast<int32_t>(id)) known.push_back(ids[0]);
    }
    for (const int32_t id : known) words_.add(id);
  }

  bool has_characters(std::string_view text) const {
    for (bool first = true; !text.empty(); first = false) {
      const Character c = read_character(text);
      if (characters_[first ? 0 : 1].find(c.code) < 0) return false;
      text.remove_prefix(c.size);
    }
    return true;
  }

  // `last` is the last character of the part.
  void encode_part(std::string_view part, Character last, WordCache& cache, std::vector<int32_t>& ids) const {
    const bool single = part.size() == static_cast<size_t>(last.size);
    const int32_t id = single ? characters_[0].find(last.code) : -1;
    if (id >= 0) return ids.push_back(id);
    encode_word(part, cache, ids);
  }

  void encode_word(std::string_view word, WordCache& cache, std::vector<int32_t>& ids) const {
    if (cache.find(number_, word, ids)) return;
    const size_t before = ids.size();
    if (const int32_t whole = words_.find(word); whole >= 0) {
      ids.push_back(whole);
    } else {
      merge_parts(word, ids);
    }
    cache.put(number_, word, std::span(ids).subspan(before));
  }

  void merge_parts(std::string_view word, std::vector<int32_t>& ids) const {
    bool first = true;
    while (word.size() > kLongestPart) {
      const size_t size = count_valid(word.substr(0, kLongestPart));
      merge(word.substr(0, size), first, false, ids);
      word.remove_prefix(size);
      first = false;
    }
    merge(word, first, true, ids);
  }

  // `first` and `last`: whether the word begins and ends with this part of it.
  void merge(std::string_view word, bool first, bool last, std::vector<int32_t>& ids) const {
    int32_t few[kFewBytes];
    std::vector<int32_t> many;
    if (word.size() > kFewBytes) many.resize(word.size());
    int32_t* symbols = many.empty() ? few : many.data();
    size_t n = 0;
    bool unknown = false;  // pending: the next may join it
    while (!word.empty()) {
      const Character c = read_valid_character(word);
      const bool ends = last && static_cast<size_t>(c.size) == word.size();
      const int32_t id = characters_[(first ? 0 : 1) + (ends ? 2 : 0)].find(c.code);
      if (id >= 0) {
        if (unknown) symbols[n++] = unknown_;
        unknown = false;
        symbols[n++] = id;
      } else if (!add_bytes(word.substr(0, c.size), symbols, n)) {
        if (unknown_ < 0) refuse_unknown(word);
        if (unknown && !fuses_unknown_) symbols[n++] = unknown_;
        unknown = true;
      }
      first = false;
      word.remove_prefix(c.size);
    }
    if (unknown) symbols[n++] = unknown_;
    merger_.merge({symbols, n}, ids);
  }

  bool add_bytes(std::string_view character, int32_t* symbols, size_t& n) const {
    for (const char byte : character)
      if (bytes_[static_cast<uint8_t>(byte)] < 0) return false;
    for (const char byte : character) symbols[n++] = bytes_[static_cast<uint8_t>(byte)];
    return true;
  }

  uint32_t number_ = WordCache::next_model();
  Vocabulary vocabulary_;
  std::string prefix_, suffix_;
  int32_t unknown_;
  bool fuses_unknown_, ignores_merges_;
  size_t longest_ = 0;  // bytes of a token
  bool cuts_ = true;    // a word may be cut where nothing merges
  std::array<CharacterIds, 4> characters_;
  std::array<int32_t, 256> bytes_{};  // -1 if there is no token
  BpeMerger merger_;
  Joinable joinable_;
  WordTable words_;
};

}  // namespace

std::unique_ptr<TokenModel> read_character_bpe(const Json& model) {
  return std::make_unique<CharacterBpe>(model);
}

}  // namespace kintsugi::text

// Unigram (Kudo 2018): { "vocab": [[token, score], ...], "unk_id": id, "byte_fallback": false }. Adjacent unknown
// characters become a single unknown token, or their bytes.
#include <algorithm>
#include <array>
#include <span>

#include "kintsugi/text/byte_tokens.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/models/rows.h"
#include "kintsugi/text/viterbi.h"
#include "kintsugi/text/vocabulary.h"
#include "kintsugi/text/word_cache.h"

namespace kintsugi::text {
namespace {

using base::Json;

constexpr double kUnknownPenalty = 10;

struct Pieces {
  Vocabulary vocabulary;
  std::vector<double> scores;
};

Pieces read_pieces(const Json& list) {
  Pieces pieces;
  for (const Json& entry : list.list()) {
    if (!entry.is_list() || entry.list().size() != 2) entry.refuse("[token, score]");
    const auto items = entry.list();
    const std::string token(items[0].text());
    // Of duplicate tokens, the last counts.
    pieces.vocabulary.ids.insert_or_assign(token, static_cast<int32_t>(pieces.scores.size()));
    pieces.vocabulary.tokens.push_back(token);
    pieces.scores.push_back(items[1].number());
  }
  if (pieces.scores.empty()) list.fail("the vocabulary is empty");
  return pieces;
}

Viterbi make_viterbi(const Pieces& pieces) {
  std::vector<std::pair<std::string_view, int32_t>> words;
  for (const auto& [token, id] : pieces.vocabulary.ids)
    if (!token.empty()) words.emplace_back(token, id);
  const double least = *std::min_element(pieces.scores.begin(), pieces.scores.end());
  return {PrefixTrie(std::move(words)), pieces.scores, least - kUnknownPenalty, false};
}

class Unigram final : public TokenModel {
 public:
  explicit Unigram(const Json& model) : pieces_(read_pieces(model.at("vocab"))), viterbi_(make_viterbi(pieces_)) {
    const auto unknown = find_part(model, "unk_id");
    if (unknown) unknown_ = static_cast<int32_t>(unknown->whole(0, static_cast<int64_t>(pieces_.scores.size()) - 1));
    bytes_.fill(-1);
    if (!flag(model, "byte_fallback", false)) return;
    for (int byte = 0; byte < 256; ++byte)
      bytes_[byte] = pieces_.vocabulary.find(byte_token(static_cast<uint8_t>(byte)));
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    WordCache& cache = WordCache::of_thread();
    if (cache.find(number_, word, ids)) return;
    const size_t before = ids.size();
    thread_local std::vector<Segment> segments;
    segments.clear();
    viterbi_.segment(word, segments);
    for (size_t i = 0; i < segments.size(); ++i) {
      if (segments[i].id >= 0 && segments[i].id != unknown_) {
        ids.push_back(segments[i].id);
        continue;
      }
      const size_t begin = segments[i].begin;
      while (i + 1 < segments.size() && (segments[i + 1].id < 0 || segments[i + 1].id == unknown_)) ++i;
      encode_unknown(word.substr(begin, segments[i].end - begin), ids);
    }
    cache.put(number_, word, std::span(ids).subspan(before));
  }

  void encode_bytes(std::string_view bytes, std::vector<int32_t>& ids) const override { encode_unknown(bytes, ids); }
  std::string_view kind() const override { return "unigram"; }
  const std::vector<std::string>& tokens() const override { return pieces_.vocabulary.tokens; }

 private:
  void encode_unknown(std::string_view text, std::vector<int32_t>& ids) const {
    const bool has_bytes =
        std::all_of(text.begin(), text.end(), [&](char byte) { return bytes_[static_cast<uint8_t>(byte)] >= 0; });
    if (!has_bytes) {
      if (unknown_ < 0) refuse_unknown(text);
      return ids.push_back(unknown_);
    }
    for (const char byte : text) ids.push_back(bytes_[static_cast<uint8_t>(byte)]);
  }

  uint32_t number_ = WordCache::next_model();
  Pieces pieces_;
  Viterbi viterbi_;
  int32_t unknown_ = -1;
  std::array<int32_t, 256> bytes_{};  // -1 if there is no token
};

}  // namespace

std::unique_ptr<TokenModel> read_unigram(const Json& model) {
  return std::make_unique<Unigram>(model);
}

}  // namespace kintsugi::text

#include "kintsugi/text/piece_model.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/bpe_merger.h"
#include "kintsugi/text/joinable.h"
#include "kintsugi/text/sentencepiece_normalizer.h"
#include "kintsugi/text/viterbi.h"
#include "kintsugi/text/vocabulary.h"
#include "kintsugi/text/word_cache.h"
#include "kintsugi/text/word_table.h"

namespace kintsugi::text {
namespace {

constexpr float kUnknownPenalty = 10, kUserDefinedPenalty = 0.1f;
constexpr size_t kLongestPart = 1 << 24;  // bounds the memory for a word, and keeps indices within 32 bits

bool is_segment(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined;
}

class UnigramPieces final : public PieceModel {
 public:
  explicit UnigramPieces(const SentencePieceFile& file) : viterbi_(make(file)) {}

  void segment(std::string_view text, std::vector<PieceSegment>& segments) const override {
    thread_local std::vector<Segment> found;
    found.clear();
    viterbi_.segment(text, found);
    for (const Segment& each : found) segments.push_back({text.substr(each.begin, each.end - each.begin), each.id});
  }

 private:
  static Viterbi make(const SentencePieceFile& file) {
    float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::min();
    for (const auto& piece : file.pieces) {
      if (piece.type != PieceType::kNormal) continue;
      least = std::min(least, piece.score);
      most = std::max(most, piece.score);
    }
    std::vector<std::pair<std::string_view, int32_t>> words;
    std::vector<double> scores(file.pieces.size());
    for (size_t id = 0; id < file.pieces.size(); ++id) {
      const auto& [text, score, type] = file.pieces[id];
      if (!is_segment(type)) continue;
      words.emplace_back(text, static_cast<int32_t>(id));
      scores[id] = score;
      // Close to zero, so that it always wins: other scores are negative.
      if (type == PieceType::kUserDefined) scores[id] = static_cast<float>(text.size()) * most - kUserDefinedPenalty;
    }
    return {PrefixTrie(std::move(words)), std::move(scores), static_cast<float>(least - kUnknownPenalty), true};
  }

  Viterbi viterbi_;
};

// Two adjacent symbols whose concatenation is a piece merge, highest score first. The splits of each piece into two are
// therefore its merges, all of one rank. A character that is not a piece is still a symbol, since a piece may contain
// it: its id follows those of the pieces.
class BpePieces final : public PieceModel {
 public:
  BpePieces(const SentencePieceFile& file, std::string_view where)
      : num_pieces_(static_cast<int32_t>(file.pieces.size())),
        tokens_(texts_of(file)),
        merger_(count_splits(file)),
        joinable_(count_splits(file)),
        words_(tokens_, tokens_.size()) {
    std::unordered_map<std::string_view, int32_t> ids;
    for (size_t id = 0; id < file.pieces.size(); ++id) {
      if (file.pieces[id].type == PieceType::kUnused)
        throw base::UserError("tokenizer", "{}: piece {}, {}, is unused, which is not supported in BPE", where, id,
                              base::in_quotes(file.pieces[id].text));
      if (is_segment(file.pieces[id].type)) ids.emplace(file.pieces[id].text, static_cast<int32_t>(id));
    }
    int32_t next = num_pieces_;
    for (const auto& [piece, id] : ids) {
      for (size_t at = 0; at < piece.size();) {
        const Character c = read_character(piece.substr(at));
        if (characters_.find(c.code) < 0) {
          const auto found = ids.find(piece.substr(at, c.size));
          characters_.set(c.code, found == ids.end() ? next++ : found->second);
        }
        at += c.size;
      }
    }
    const std::vector<uint32_t> ranks = ranks_of(file);
    for (const auto& [piece, id] : ids) add_merges(piece, id, ranks[id], ids);
    std::vector<int32_t> symbols;
    for (const auto& [piece, id] : ids) {
      symbols.clear();
      merge(piece, symbols);
      if (symbols.size() == 1) words_.add(id);
    }
  }

  void segment(std::string_view text, std::vector<PieceSegment>& segments) const override {
    size_t begin = 0;
    char32_t previous = 0;
    for (size_t at = 0; at < text.size();) {
      const Character c = read_character(text.substr(at));
      const bool plain = c.code < 0x80 && ((c.code | 0x20) >= 'a' && (c.code | 0x20) <= 'z');
      const bool cuts = (!plain && !joinable_.find(previous, c.code)) || at - begin >= kLongestPart;
      if (at > begin && cuts) {
        segment_part(text.substr(begin, at - begin), segments);
        begin = at;
      }
      previous = c.code;
      at += c.size;
    }
    if (begin < text.size()) segment_part(text.substr(begin), segments);
  }

 private:
  static std::vector<std::string> texts_of(const SentencePieceFile& file) {
    std::vector<std::string> texts;
    for (const auto& piece : file.pieces) texts.push_back(piece.text);
    return texts;
  }

  static size_t count_splits(const SentencePieceFile& file) {
    size_t n = 0;
    for (const auto& piece : file.pieces) n += piece.text.size();
    return n;
  }

  // 0 for the highest score; equal scores have equal ranks.
  static std::vector<uint32_t> ranks_of(const SentencePieceFile& file) {
    std::vector<float> scores;
    for (const auto& piece : file.pieces) scores.push_back(piece.score);
    std::sort(scores.begin(), scores.end(), std::greater<>());
    std::vector<uint32_t> ranks;
    for (const auto& piece : file.pieces) {
      const auto at = std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>());
      ranks.push_back(static_cast<uint32_t>(at - scores.begin()));
    }
    return ranks;
  }

  int32_t symbol_of(std::string_view text, const std::unordered_map<std::string_view, int32_t>& ids) const {
    if (const auto found = ids.find(text); found != ids.end()) return found->second;
    const Character c = read_character(text);
    return static_cast<size_t>(c.size) == text.size() ? characters_.find(c.code) : -1;
  }

  void add_merges(std::string_view piece, int32_t id, uint32_t rank,
                  const std::unordered_map<std::string_view, int32_t>& ids) {
    for (size_t at = static_cast<size_t>(read_character(piece).size); at < piece.size();) {
      const std::string_view left = piece.substr(0, at), right = piece.substr(at);
      const int32_t a = symbol_of(left, ids), b = symbol_of(right, ids);
      if (a >= 0 && b >= 0) {
        merger_.add(a, b, id, rank);
        joinable_.add(left, right);
      }
      at += static_cast<size_t>(read_character(right).size);
    }
  }

  void merge(std::string_view text, std::vector<int32_t>& symbols) const {
    thread_local std::vector<int32_t> characters;
    characters.clear();
    while (!text.empty()) {
      const Character c = read_character(text);
      characters.push_back(unknown_or(characters_.find(c.code)));
      text.remove_prefix(c.size);
    }
    merger_.merge(characters, symbols);
  }

  static int32_t unknown_or(int32_t id) { return id < 0 ? INT32_MAX : id; }

  void segment_part(std::string_view text, std::vector<PieceSegment>& segments) const {
    const int32_t whole = words_.find(text);
    if (whole >= 0) return segments.push_back({text, whole});
    thread_local std::vector<int32_t> symbols;
    symbols.clear();
    WordCache& cache = WordCache::of_thread();
    if (!cache.find(number_, text, symbols)) {
      merge(text, symbols);
      cache.put(number_, text, symbols);
    }
    for (const int32_t id : symbols) {
      const bool known = id < num_pieces_;
      const size_t size = known ? tokens_[id].size() : static_cast<size_t>(read_character(text).size);
      segments.push_back({text.substr(0, size), known ? id : -1});
      text.remove_prefix(size);
    }
  }

  uint32_t number_ = WordCache::next_model();
  int32_t num_pieces_;
  std::vector<std::string> tokens_;
  CharacterIds characters_;
  BpeMerger merger_;
  Joinable joinable_;
  WordTable words_;
};

// Characters, or words that begin (or end) with a space mark.
class WholePieces final : public PieceModel {
 public:
  explicit WholePieces(const SentencePieceFile& file)
      : words_(file.model == SentencePieceModel::kWord), suffix_(file.suffix_whitespace) {
    for (size_t id = 0; id < file.pieces.size(); ++id)
      if (is_segment(file.pieces[id].type)) ids_.emplace(file.pieces[id].text, static_cast<int32_t>(id));
  }

  void segment(std::string_view text, std::vector<PieceSegment>& segments) const override {
    while (!text.empty()) {
      const std::string_view part = text.substr(0, words_ ? word_size(text) : read_character(text).size);
      const auto found = ids_.find(part);
      segments.push_back({part, found == ids_.end() ? -1 : found->second});
      text.remove_prefix(part.size());
    }
  }

 private:
  size_t word_size(std::string_view text) const {
    const size_t at = text.find(kSpaceMark, suffix_ ? 0 : 1);
    if (at == text.npos) return text.size();
    return suffix_ ? at + kSpaceMark.size() : at;
  }

  bool words_, suffix_;
  std::unordered_map<std::string_view, int32_t> ids_;
};

}  // namespace

std::unique_ptr<PieceModel> make_piece_model(const SentencePieceFile& file, std::string_view where) {
  switch (file.model) {
    case SentencePieceModel::kUnigram:
      return std::make_unique<UnigramPieces>(file);
    case SentencePieceModel::kBpe:
      return std::make_unique<BpePieces>(file, where);
    case SentencePieceModel::kWord:
    case SentencePieceModel::kChar:
      return std::make_unique<WholePieces>(file);
  }
  throw base::InternalError("tokenizer", "a model of type {}", static_cast<int>(file.model));
}

}  // namespace kintsugi::text

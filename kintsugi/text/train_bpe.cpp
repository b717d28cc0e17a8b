#include "kintsugi/text/train_bpe.h"

#include <algorithm>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/text/bpe_tokenizer.h"
#include "kintsugi/text/byte_symbols.h"

namespace kintsugi::text {
namespace {

constexpr int32_t kNumBytes = 256;
constexpr int64_t kLeastCount = 2;

using Key = uint64_t;  // left << 32 | right

Key key_of(int32_t left, int32_t right) {
  return static_cast<Key>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}
int32_t left_of(Key key) {
  return static_cast<int32_t>(key >> 32);
}
int32_t right_of(Key key) {
  return static_cast<int32_t>(key & 0xFFFFFFFF);
}

struct HashKey {
  size_t operator()(Key key) const { return static_cast<size_t>((key * 0x9E3779B97F4A7C15ULL) >> 20); }
};

struct PairStatistics {
  int64_t count = 0;
  std::vector<uint32_t> words;  // that contain or contained it; unordered, with duplicates
};

// A pair with its count when queued; stale if the count has changed since.
struct Candidate {
  int64_t count = 0;
  Key key = 0;
};

class Trainer {
 public:
  explicit Trainer(const WordCounter& words) : words_(words), queue_(Worse{&tokens_}) {
    int32_t id_of_byte[kNumBytes] = {};
    for (int32_t id = 0; id < kNumBytes; ++id) {
      const uint8_t byte = nth_symbol_byte(id);
      id_of_byte[byte] = id;
      tokens_.emplace_back(1, static_cast<char>(byte));
    }
    starts_.reserve(words.size() + 1);
    for (size_t i = 0; i < words.size(); ++i) {
      starts_.push_back(symbols_.size());
      for (const char byte : words.word(i)) symbols_.push_back(id_of_byte[static_cast<uint8_t>(byte)]);
      sizes_.push_back(static_cast<uint32_t>(symbols_.size() - starts_.back()));
    }
    for (uint32_t word = 0; word < words.size(); ++word) {
      const int32_t* symbols = &symbols_[starts_[word]];
      for (uint32_t k = 0; k + 1 < sizes_[word]; ++k) count_pair(key_of(symbols[k], symbols[k + 1]), word);
    }
    for (const auto& [key, statistics] : pairs_) queue_.push({statistics.count, key});
    touched_.clear();
  }

  // Learns one merge; returns false if no pair is frequent enough.
  bool learn() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.key);
      if (found == pairs_.end() || found->second.count != best.count) continue;
      if (best.count < kLeastCount) return false;
      const std::vector<uint32_t> words = std::move(found->second.words);
      pairs_.erase(found);
      merge(best.key, words);
      return true;
    }
    return false;
  }

  std::vector<std::string> take_tokens() { return std::move(tokens_); }
  std::vector<BpeMerge> take_merges() { return std::move(merges_); }
  int32_t num_tokens() const { return static_cast<int32_t>(tokens_.size()); }

 private:
  struct Worse {
    const std::vector<std::string>* tokens;
    bool operator()(const Candidate& a, const Candidate& b) const {
      if (a.count != b.count) return a.count < b.count;
      const int left = (*tokens)[left_of(a.key)].compare((*tokens)[left_of(b.key)]);
      return left != 0 ? left > 0 : (*tokens)[right_of(a.key)] > (*tokens)[right_of(b.key)];
    }
  };

  void count_pair(Key key, uint32_t word) {
    PairStatistics& pair = pairs_[key];
    pair.count += static_cast<int64_t>(words_.count(word));
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    touched_.push_back(key);
  }

  void uncount_pair(Key key, uint32_t word, Key merged) {
    if (key == merged) return;  // removed as a whole
    const auto found = pairs_.find(key);
    base::require(found != pairs_.end(), "train_bpe", "a pair of word {} was never counted", word);
    found->second.count -= static_cast<int64_t>(words_.count(word));
    touched_.push_back(key);
  }

  void merge(Key key, const std::vector<uint32_t>& words) {
    const int32_t merged = num_tokens();
    tokens_.push_back(tokens_[left_of(key)] + tokens_[right_of(key)]);
    merges_.push_back({left_of(key), right_of(key), merged});
    touched_.clear();
    for (const uint32_t word : words) merge_in_word(key, merged, word);
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const Key other : touched_) {
      const auto found = pairs_.find(other);
      if (found->second.count > 0) {
        queue_.push({found->second.count, other});
      } else {
        pairs_.erase(found);
      }
    }
  }

  // Subtracts all pairs of the word from the counts and adds the pairs of the merged word, except unchanged ones.
  void merge_in_word(Key key, int32_t merged, uint32_t word) {
    int32_t* symbols = &symbols_[starts_[word]];
    const uint32_t size = sizes_[word];
    const int32_t left = left_of(key);
    const int32_t right = right_of(key);
    uint32_t out = 0;
    for (uint32_t in = 0; in < size;) {
      if (in + 1 < size && symbols[in] == left && symbols[in + 1] == right) {
        // symbols[out - 1] is the current left neighbour. If it was just merged, its pair with the old left symbol was
        // already removed, and (merged, left) was added.
        if (out > 0) {
          uncount_pair(key_of(symbols[out - 1], left), word, key);
          count_pair(key_of(symbols[out - 1], merged), word);
        }
        if (in + 2 < size) {
          uncount_pair(key_of(right, symbols[in + 2]), word, key);
          count_pair(key_of(merged, symbols[in + 2]), word);
        }
        symbols[out++] = merged;
        in += 2;
      } else {
        symbols[out++] = symbols[in++];
      }
    }
    sizes_[word] = out;
  }

  const WordCounter& words_;
  std::vector<std::string> tokens_;
  std::vector<BpeMerge> merges_;
  std::vector<int32_t> symbols_;  // of all words, each from its start
  std::vector<size_t> starts_;
  std::vector<uint32_t> sizes_;
  std::unordered_map<Key, PairStatistics, HashKey> pairs_;
  std::priority_queue<Candidate, std::vector<Candidate>, Worse> queue_;
  std::vector<Key> touched_;  // pairs whose counts the current merge changed
};

}  // namespace

std::unique_ptr<Tokenizer> train_bpe(const WordCounter& words, int32_t vocab_size,
                                     const std::function<void(int32_t done, int32_t total)>& progress) {
  if (vocab_size <= kNumBytes) {
    throw base::UserError("tokenizer", "a vocabulary of {} is too small for byte-level BPE; the least is {}",
                          vocab_size, kNumBytes + 1);
  }
  Trainer trainer(words);
  while (trainer.num_tokens() + 1 < vocab_size) {
    if (!trainer.learn()) {
      throw base::UserError("tokenizer",
                            "the corpus has pairs for a vocabulary of {} at most, and {} was asked for; ask for less, "
                            "or take a larger corpus",
                            trainer.num_tokens() + 1, vocab_size);
    }
    if (progress) progress(trainer.num_tokens() + 1, vocab_size);
  }
  BpeDefinition definition;
  definition.where = "trained BPE";
  definition.model.tokens = trainer.take_tokens();
  definition.model.merges = trainer.take_merges();
  const auto end = static_cast<int32_t>(definition.model.tokens.size());
  definition.added.push_back({.id = end, .content = std::string(kEndOfText), .special = true});
  definition.patterns.emplace_back(kGpt2Pattern, false, definition.where);
  return make_bpe_tokenizer(std::move(definition));
}

}  // namespace kintsugi::text

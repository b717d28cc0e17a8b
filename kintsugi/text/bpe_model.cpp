#include "kintsugi/text/bpe_model.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <queue>

namespace kintsugi::text {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;
constexpr size_t kShortWord = 48;  // from here on a heap is faster than a scan of all pairs
constexpr size_t kPackedWord = 8;
constexpr size_t kLongestPart = 1 << 24;  // bounds the memory that a word takes, and keeps indices within 32 bits

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

size_t slot_of(uint64_t key, size_t mask) {
  return (key * 0x9E3779B97F4A7C15ULL >> 29) & mask;
}

// Two overlapping reads cover all bytes of a word of known size.
template <typename Half>
uint64_t pack(std::string_view word) {
  Half first = 0;
  Half last = 0;
  std::memcpy(&first, word.data(), sizeof first);
  std::memcpy(&last, word.data() + word.size() - sizeof last, sizeof last);
  return static_cast<uint64_t>(first) << 32 | last;
}

uint64_t key_of(std::string_view word) {
  if (word.size() > kPackedWord) return XXH3_64bits(word.data(), word.size());
  if (word.size() >= 4) return pack<uint32_t>(word);
  if (word.size() >= 2) return pack<uint16_t>(word);
  return static_cast<uint8_t>(word[0]);
}

}  // namespace

BpeModel::BpeModel(const Options& options)
    : tokens_(options.tokens),
      pairs_(std::bit_ceil(options.merges.size() * 2 + 2)),
      words_(std::bit_ceil(options.tokens.size() * 2 + 2)) {
  id_of_byte_.fill(-1);
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_[id].size() == 1) id_of_byte_[static_cast<uint8_t>(tokens_[id][0])] = static_cast<int32_t>(id);
  }
  for (size_t rank = 0; rank < options.merges.size(); ++rank) {
    add_pair(options.merges[rank], static_cast<uint32_t>(rank));
  }
  // Nearly every token is what its own bytes merge to. Such a word needs one look-up; determined here, once.
  std::vector<int32_t> ids;
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_[id].empty()) continue;
    ids.clear();
    const bool known = options.prefer_whole_words || (encode_word(tokens_[id], ids) && ids.size() == 1);
    if (known) add_word(static_cast<int32_t>(id));
  }
}

void BpeModel::add_pair(const BpeMerge& merge, uint32_t rank) {
  const uint64_t key = key_of(merge.left, merge.right);
  const size_t mask = pairs_.size() - 1;
  size_t slot = slot_of(key, mask);
  while (pairs_[slot].merged >= 0) slot = (slot + 1) & mask;
  pairs_[slot] = {key, rank, merge.merged};
}

const BpeModel::Pair* BpeModel::find_pair(int32_t left, int32_t right) const {
  const uint64_t key = key_of(left, right);
  const size_t mask = pairs_.size() - 1;
  for (size_t slot = slot_of(key, mask); pairs_[slot].merged >= 0; slot = (slot + 1) & mask) {
    if (pairs_[slot].key == key) return &pairs_[slot];
  }
  return nullptr;
}

void BpeModel::add_word(int32_t id) {
  const uint64_t key = key_of(tokens_[id]);
  const size_t mask = words_.size() - 1;
  size_t slot = slot_of(key, mask);
  while (words_[slot].id >= 0) slot = (slot + 1) & mask;
  words_[slot] = {key, static_cast<uint32_t>(tokens_[id].size()), id};
}

int32_t BpeModel::find_word(std::string_view word) const {
  const uint64_t key = key_of(word);
  const size_t mask = words_.size() - 1;
  for (size_t slot = slot_of(key, mask); words_[slot].id >= 0; slot = (slot + 1) & mask) {
    const Word& known = words_[slot];
    if (known.key == key && known.size == word.size() && (word.size() <= kPackedWord || tokens_[known.id] == word)) {
      return known.id;
    }
  }
  return -1;
}

bool BpeModel::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  const int32_t whole = find_word(word);
  if (whole >= 0) {
    ids.push_back(whole);
    return true;
  }
  bool known = true;
  for (size_t from = 0; known && from < word.size(); from += kLongestPart) {
    known = encode_part(word.substr(from, kLongestPart), ids);
  }
  return known;
}

bool BpeModel::encode_part(std::string_view word, std::vector<int32_t>& ids) const {
  int32_t few[kShortWord];
  std::vector<int32_t> many;
  if (word.size() > kShortWord) many.resize(word.size());
  const std::span<int32_t> symbols(many.empty() ? few : many.data(), word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    symbols[i] = id_of_byte_[static_cast<uint8_t>(word[i])];
    if (symbols[i] < 0) return false;
  }
  if (many.empty()) {
    merge_short(symbols, ids);
  } else {
    merge_long(symbols, ids);
  }
  return true;
}

void BpeModel::merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const {
  size_t n = symbols.size();
  uint32_t rank[kShortWord];  // of the pair that begins here
  int32_t merged[kShortWord];
  const auto look = [&](size_t i) {
    const Pair* pair = i + 1 < n ? find_pair(symbols[i], symbols[i + 1]) : nullptr;
    rank[i] = pair ? pair->rank : kNoRank;
    merged[i] = pair ? pair->merged : -1;
  };
  for (size_t i = 0; i < n; ++i) look(i);
  while (n > 1) {
    const size_t best = static_cast<size_t>(std::min_element(rank, rank + n) - rank);
    if (rank[best] == kNoRank) break;
    symbols[best] = merged[best];
    std::copy(symbols.begin() + best + 2, symbols.begin() + n, symbols.begin() + best + 1);
    std::copy(rank + best + 2, rank + n, rank + best + 1);
    std::copy(merged + best + 2, merged + n, merged + best + 1);
    --n;
    look(best);
    if (best > 0) look(best - 1);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + n);
}

void BpeModel::merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const {
  struct Node {
    int32_t symbol;  // -1: merged into the one on its left
    uint32_t previous, next;
  };
  struct Candidate {
    uint32_t rank;
    uint32_t at;
    int32_t left, right, merged;
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  const auto n = static_cast<uint32_t>(symbols.size());
  std::vector<Node> nodes(n);
  for (uint32_t i = 0; i < n; ++i) nodes[i] = {symbols[i], i - 1, i + 1};
  std::vector<Candidate> storage;
  storage.reserve(n);
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(storage));
  const auto offer = [&](uint32_t left) {
    const uint32_t right = nodes[left].next;
    if (right >= n) return;
    const Pair* pair = find_pair(nodes[left].symbol, nodes[right].symbol);
    if (pair) queue.push({pair->rank, left, nodes[left].symbol, nodes[right].symbol, pair->merged});
  };
  for (uint32_t i = 0; i + 1 < n; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Node& left = nodes[best.at];
    if (left.symbol != best.left || left.next >= n || nodes[left.next].symbol != best.right) continue;  // it is gone
    Node& right = nodes[left.next];
    left.symbol = best.merged;
    right.symbol = -1;
    left.next = right.next;
    if (left.next < n) nodes[left.next].previous = best.at;
    offer(best.at);
    if (left.previous < n) offer(left.previous);
  }
  for (uint32_t i = 0; i < n; i = nodes[i].next) ids.push_back(nodes[i].symbol);
}

}  // namespace kintsugi::text

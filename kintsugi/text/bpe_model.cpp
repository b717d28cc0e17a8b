#include "kintsugi/text/bpe_model.h"

namespace kintsugi::text {
namespace {

constexpr size_t kFewBytes = 48;
constexpr size_t kLongestPart = 1 << 24;  // bounds the memory for a word, and keeps indices within 32 bits

}  // namespace

BpeModel::BpeModel(const Options& options)
    : tokens_(options.tokens), merger_(options.merges.size()), words_(tokens_, tokens_.size()) {
  id_of_byte_.fill(-1);
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_[id].size() == 1) id_of_byte_[static_cast<uint8_t>(tokens_[id][0])] = static_cast<int32_t>(id);
  }
  for (size_t rank = 0; rank < options.merges.size(); ++rank) {
    const BpeMerge& merge = options.merges[rank];
    merger_.add(merge.left, merge.right, merge.merged, static_cast<uint32_t>(rank));
  }
  // Nearly every token results from merging its own bytes. Such a word takes a single lookup; determined here once.
  std::vector<int32_t> ids;
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_[id].empty()) continue;
    ids.clear();
    const bool known = options.prefer_whole_words || (encode_word(tokens_[id], ids) && ids.size() == 1);
    if (known) words_.add(static_cast<int32_t>(id));
  }
}

bool BpeModel::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  const int32_t whole = words_.find(word);
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
  int32_t few[kFewBytes];
  std::vector<int32_t> many;
  if (word.size() > kFewBytes) many.resize(word.size());
  const std::span<int32_t> symbols(many.empty() ? few : many.data(), word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    symbols[i] = id_of_byte_[static_cast<uint8_t>(word[i])];
    if (symbols[i] < 0) return false;
  }
  merger_.merge(symbols, ids);
  return true;
}

}  // namespace kintsugi::text

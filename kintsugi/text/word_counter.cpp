#include "kintsugi/text/word_counter.h"

#include <xxhash.h>

#include <limits>

#include "kintsugi/base/error.h"

namespace kintsugi::text {
namespace {

constexpr size_t kLongestWord = 1 << 10;
constexpr size_t kFirstSlots = 1 << 12;

}  // namespace

void WordCounter::add(std::string_view text) {
  num_bytes_ += text.size();
  splitter_.split(text, [this](std::string_view word) {
    for (size_t from = 0; from < word.size(); from += kLongestWord) count_word(word.substr(from, kLongestWord), 1);
  });
}

void WordCounter::merge(WordCounter&& other) {
  num_bytes_ += other.num_bytes_;
  if (words_.empty()) {
    words_ = std::move(other.words_);
    slots_ = std::move(other.slots_);
    letters_ = std::move(other.letters_);
  } else {
    for (size_t i = 0; i < other.size(); ++i) count_word(other.word(i), other.count(i));
  }
  other = WordCounter();
}

void WordCounter::count_word(std::string_view word, uint64_t times) {
  if (words_.size() * 2 >= slots_.size()) grow();
  const uint64_t hash = XXH3_64bits(word.data(), word.size());
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    Word& known = words_[slots_[slot] - 1];
    if (known.hash == hash && this->word(slots_[slot] - 1) == word) {
      known.count += times;
      return;
    }
  }
  if (words_.size() >= std::numeric_limits<uint32_t>::max() - 1) {
    throw base::UserError("tokenizer", "the corpus has more than {} distinct words; train on a part of it",
                          words_.size());
  }
  words_.push_back({hash, times, letters_.size(), static_cast<uint32_t>(word.size())});
  letters_ += word;
  slots_[slot] = static_cast<uint32_t>(words_.size());
}

void WordCounter::grow() {
  slots_.assign(slots_.empty() ? kFirstSlots : slots_.size() * 2, 0);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < words_.size(); ++i) {
    size_t slot = words_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace kintsugi::text

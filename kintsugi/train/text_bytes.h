// Bytes of the texts of tokens, for losses in bits per byte, which do not depend on the tokenizer.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/samples/batch.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::train {

class TextBytes {
 public:
  // Takes the bytes of each token, not those of decoded texts: a token may be a part of a character. Tokens that mark
  // the beginning or the end of texts have none.
  explicit TextBytes(const text::Tokenizer& tokenizer);

  // Of labels; uncounted ones have none.
  int64_t of(std::span<const int32_t> labels) const;

  // Of the counted labels of `count` samples from the first on.
  int64_t of(const samples::SampleSource& source, int64_t count) const;

  // The same, for a source that is the same in each call; computed once per name.
  int64_t of_file(const std::string& name, const samples::SampleSource& source, int64_t count);

 private:
  std::vector<int32_t> bytes_;  // by id
  std::map<std::string, int64_t> files_;
};

// The loss, summed over tokens in nats, per byte of their texts in bits.
double bits_per_byte(double loss_sum, int64_t bytes);

}  // namespace kintsugi::train

// Splits a text into words from left to right.
#pragma once

#include <string_view>

#include "kintsugi/text/word_splitter.h"

namespace kintsugi::text {

class WordCutter {
 public:
  WordCutter(std::string_view text, Place place, const WordSink& word) : text_(text), place_(place), word_(word) {}

  // The offset of bytes in the text.
  size_t at(std::string_view bytes) const { return static_cast<size_t>(bytes.data() - text_.data()); }

  // Ends the open word, if nonempty, at `end`; the next begins at `next`.
  void cut(size_t end, size_t next) {
    if (end > begin_) word_(text_.substr(begin_, end - begin_), begin_ == 0 ? place_ : Place::kInside);
    begin_ = next;
  }
  void finish() { cut(text_.size(), text_.size()); }

 private:
  std::string_view text_;
  Place place_;
  const WordSink& word_;
  size_t begin_ = 0;  // of the open word
};

}  // namespace kintsugi::text

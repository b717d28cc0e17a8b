// A pre-tokenizer of tokenizer.json: splits normalized text into words, which the model takes one by one.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/place.h"

namespace kintsugi::text {

using WordSink = std::function<void(std::string_view word, Place place)>;

// Const use is thread-safe.
class WordSplitter {
 public:
  virtual ~WordSplitter() = default;
  // Calls `word` for the nonempty words of `text`, which is valid UTF-8, in order. A word may be transformed text; it
  // is only valid during the call.
  virtual void split(std::string_view text, Place place, const WordSink& word) const = 0;
  // Whether its words are spelled in the characters that represent bytes.
  virtual bool spells_bytes() const { return false; }
};

// Throws UserError for a type that is not among the rows of word_splitter.cpp.
std::unique_ptr<WordSplitter> read_word_splitter(const base::Json& part);

// The place of a piece of a text.
inline Place place_of(std::string_view piece, std::string_view text, Place place) {
  return piece.data() == text.data() ? place : Place::kInside;
}

}  // namespace kintsugi::text

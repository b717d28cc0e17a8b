// Each character is an id: nanoGPT's character-level encoding.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// The ids of `characters`, ordered by code point, are 0, 1, ...; `end_of_text` adds another for the end of a text.
// Encoding any other character or invalid UTF-8 throws UserError, stating which and where. Throws InternalError if
// there are no characters, or a surrogate among them.
std::unique_ptr<Tokenizer> make_chars_tokenizer(const std::set<char32_t>& characters, bool end_of_text);

// Collects the characters of a corpus from pieces of valid UTF-8. One per thread, then merged.
class CharacterCollector {
 public:
  CharacterCollector();

  // Throws UserError if `text` is not valid UTF-8; `where` names it.
  void add(std::string_view text, std::string_view where);
  void merge(const CharacterCollector& other);
  std::set<char32_t> characters() const;

 private:
  std::vector<bool> seen_;
};

std::unique_ptr<Tokenizer> read_chars_json(const base::Json& document);

}  // namespace kintsugi::text

// Each character is an id: nanoGPT's character-level preparation.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// The ids of `characters`, in the order of their code points, are 0, 1, ...; `end_of_text` adds one more for the end
// of a text. Text with any other character, or that is not valid UTF-8, is a UserError that says which and where.
// InternalError if there are no characters, or a surrogate is among them.
std::unique_ptr<Tokenizer> make_chars_tokenizer(const std::set<char32_t>& characters, bool end_of_text);

// The characters of a corpus, collected from pieces that are each valid UTF-8. One per thread, then merged.
class CharacterCollector {
 public:
  CharacterCollector();

  // UserError if `text` is not valid UTF-8; `where` names it.
  void add(std::string_view text, std::string_view where);
  void merge(const CharacterCollector& other);
  std::set<char32_t> characters() const;

 private:
  std::vector<bool> seen_;
};

std::unique_ptr<Tokenizer> read_chars_json(const base::Json& document);

}  // namespace kintsugi::text

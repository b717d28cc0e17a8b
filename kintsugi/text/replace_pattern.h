// "pattern" and "content" of the normalizer and the decoder Replace.
#pragma once

#include <optional>
#include <string>

#include "kintsugi/base/json.h"
#include "kintsugi/text/split_pattern.h"

namespace kintsugi::text {

// { "String": text } or { "Regex": pattern }. Throws UserError for another form or an invalid pattern.
SplitPattern read_pattern(const base::Json& pattern);

// Replaces each occurrence of the nonempty `from` by `to`.
void replace_all(std::string& text, std::string_view from, std::string_view to);

// Const use is thread-safe.
class ReplacePattern {
 public:
  explicit ReplacePattern(const base::Json& part);
  void apply(std::string& text) const;

 private:
  std::string literal_, content_;
  std::optional<SplitPattern> pattern_;  // if it is not a literal
};

}  // namespace kintsugi::text

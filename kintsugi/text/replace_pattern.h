// The "pattern" and "content" of the normalizer and the decoder Replace.
#pragma once

#include <optional>
#include <string>

#include "kintsugi/base/json.h"
#include "kintsugi/text/split_pattern.h"

namespace kintsugi::text {

// { "String": text } or { "Regex": pattern }. UserError for another form, or a pattern that is wrong.
SplitPattern read_pattern(const base::Json& pattern);

// Each `from`, which is not empty, becomes `to`.
void replace_all(std::string& text, std::string_view from, std::string_view to);

// Const use is safe from several threads at once.
class ReplacePattern {
 public:
  explicit ReplacePattern(const base::Json& part);
  void apply(std::string& text) const;

 private:
  std::string literal_, content_;
  std::optional<SplitPattern> pattern_;  // where it is no literal
};

}  // namespace kintsugi::text

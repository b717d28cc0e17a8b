#include "kintsugi/text/replace_pattern.h"

namespace kintsugi::text {

SplitPattern read_pattern(const base::Json& pattern) {
  const bool literal = pattern.has("String");
  return SplitPattern(pattern.at(literal ? "String" : "Regex").text(), literal, "tokenizer.json");
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == text.npos) return;
  std::string replaced;
  replaced.reserve(text.size() + text.size() / 2);
  size_t done = 0;
  for (; at != text.npos; at = text.find(from, done)) {
    replaced.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = std::move(replaced.append(text, done, text.npos));
}

ReplacePattern::ReplacePattern(const base::Json& part) : content_(part.at("content").text()) {
  const base::Json pattern = part.at("pattern");
  if (const auto literal = pattern.find("String")) {
    literal_ = literal->text();
  } else {
    pattern_.emplace(read_pattern(pattern));
  }
}

void ReplacePattern::apply(std::string& text) const {
  if (!pattern_) {
    if (!literal_.empty()) replace_all(text, literal_, content_);
    return;
  }
  std::string replaced;
  pattern_->match(text, [&](std::string_view piece, bool is_match) { replaced += is_match ? content_ : piece; });
  text = std::move(replaced);
}

}  // namespace kintsugi::text

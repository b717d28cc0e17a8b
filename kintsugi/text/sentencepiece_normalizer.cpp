#include "kintsugi/text/sentencepiece_normalizer.h"

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {

SentencePieceNormalizer::Step SentencePieceNormalizer::next(std::string_view text) const {
  if (const size_t size = user_defined_.longest(text).first; size > 0) return {text.substr(0, size), size};
  if (!map_.empty()) {
    if (const auto found = map_.longest(text)) return {found->second, found->first};
  }
  const auto size = static_cast<size_t>(read_character(text).size);
  return {text.substr(0, size), size};
}

std::string SentencePieceNormalizer::apply(std::string_view text, Place place) const {
  const bool removes = file_.remove_extra_whitespaces;
  const std::string_view space = file_.escape_whitespaces ? kSpaceMark : " ";
  if (removes && place != Place::kContinued) {
    while (!text.empty()) {
      const Step step = next(text);
      if (step.text != " ") break;
      text.remove_prefix(step.size);
    }
  }
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 2 + space.size());
  const bool adds = file_.add_dummy_prefix && place != Place::kContinued;
  if (adds && !file_.suffix_whitespace) out += space;
  bool after_space = removes && place != Place::kContinued;
  while (!text.empty()) {
    const Step step = next(text);
    std::string_view part = step.text;
    while (after_space && part.starts_with(' ')) part.remove_prefix(1);
    if (!part.empty()) {
      for (const char c : part) {
        if (c == ' ') {
          out += space;
        } else {
          out += c;
        }
      }
      after_space = removes && part.ends_with(' ');
    }
    text.remove_prefix(step.size);
  }
  while (removes && out.ends_with(space)) out.erase(out.size() - space.size());
  if (adds && file_.suffix_whitespace) out += space;
  return out;
}

}  // namespace kintsugi::text

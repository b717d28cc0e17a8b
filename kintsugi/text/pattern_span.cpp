#include "kintsugi/text/pattern_span.h"

#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/text/split_pattern.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

constexpr int kMostNesting = 50;

// What a part of a pattern may match, in terms of the pair.
struct Matched {
  bool left = false, right = false;
  bool spans = false;  // a right one after a left one
};

// Walks through a pattern; stops at anything unknown.
class SpanWalk {
 public:
  SpanWalk(std::string_view pattern, const CharacterPair& pair) : text_(pattern), pair_(pair) {}

  bool never() {
    const auto all = alternatives(0);
    return all && at_ == text_.size() && !all->spans;
  }

 private:
  bool more() const { return at_ < text_.size(); }
  bool takes(std::string_view part) {
    if (!text_.substr(at_).starts_with(part)) return false;
    at_ += part.size();
    return true;
  }

  std::optional<Matched> alternatives(int depth) {
    if (depth > kMostNesting) return std::nullopt;
    Matched all;
    do {
      const auto one = sequence(depth);
      if (!one) return std::nullopt;
      all = {all.left || one->left, all.right || one->right, all.spans || one->spans};
    } while (takes("|"));
    return all;
  }

  std::optional<Matched> sequence(int depth) {
    Matched so_far;
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      if (takes("(?!") || takes("(?=")) {
        // One character of look-ahead after a match that does not end with a left one.
        if (so_far.left || !character() || !takes(")")) return std::nullopt;
        continue;
      }
      auto item = takes("(?:") || takes("(?>") ? group(depth, "")
                  : takes("(?i:")              ? group(depth, "(?i:")
                  : takes("(?")                ? std::nullopt
                  : takes("(")                 ? group(depth, "")
                                               : character();
      if (!item) return std::nullopt;
      if (repeats()) item->spans = item->spans || (item->left && item->right);
      so_far.spans = so_far.spans || item->spans || (so_far.left && item->right);
      so_far.left = so_far.left || item->left;
      so_far.right = so_far.right || item->right;
    }
    return so_far;
  }

  std::optional<Matched> group(int depth, std::string_view ignoring_case) {
    const std::string_view outside = case_;
    if (!ignoring_case.empty()) case_ = ignoring_case;
    const auto inside = alternatives(depth + 1);
    case_ = outside;
    return inside && takes(")") ? inside : std::nullopt;
  }

  // Parses the quantifiers of an item: returns whether it may match more than once.
  bool repeats() {
    bool many = false;
    while (more()) {
      const char c = text_[at_];
      if (c == '*' || c == '+' || c == '?') {
        many = many || c != '?';
        ++at_;
      } else if (const size_t end = text_.find('}', at_);
                 c == '{' && end != text_.npos && text_.find_first_not_of("0123456789,", at_ + 1) == end) {
        many = true;
        at_ = end + 1;
      } else {
        break;
      }
    }
    return many;
  }

  // An item that matches one character.
  std::optional<Matched> character() {
    const size_t begin = at_;
    if (!more() || std::string_view("^$*+?{}()|").find(text_[at_]) != std::string_view::npos) return std::nullopt;
    if (text_[at_] == '\\') {
      if (!escape()) return std::nullopt;
    } else if (text_[at_] == '[') {
      if (!set()) return std::nullopt;
    } else {
      at_ += std::max(1, read_character(text_.substr(at_)).size);
    }
    return matched(text_.substr(begin, at_ - begin));
  }

  bool escape() {
    if (at_ + 1 >= text_.size()) return false;
    const char c = text_[at_ + 1];
    at_ += 2;
    if (std::string_view("pPx").find(c) != std::string_view::npos && more() && text_[at_] == '{') {
      at_ = text_.find('}', at_);
      return at_ != text_.npos && ++at_ > 0;
    }
    if (c == 'u' && at_ + 4 <= text_.size()) return (at_ += 4) > 0;
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return !letter || std::string_view("dDsSwWhHnrtfv").find(c) != std::string_view::npos;
  }

  // Sets nest in Oniguruma's syntax.
  bool set() {
    int open = 0;
    for (; more(); ++at_) {
      const char c = text_[at_];
      if (c == '\\') ++at_;
      if (c == '[') ++open;
      if (c == ']' && --open == 0) return ++at_ > 0;
    }
    return false;
  }

  std::optional<Matched> matched(std::string_view item) const {
    const std::string pattern = case_.empty() ? std::string(item) : std::string(case_).append(item).append(")");
    try {
      const SplitPattern one(pattern, false, "pattern");
      const auto any = [&](std::string_view characters) {
        bool found = false;
        one.match(characters, [&](std::string_view, bool is_match) { found = found || is_match; });
        return found;
      };
      return Matched{.left = any(pair_.left), .right = any(pair_.right)};
    } catch (const base::UserError&) {
      return std::nullopt;
    }
  }

  std::string_view text_, case_;
  const CharacterPair& pair_;
  size_t at_ = 0;
};

}  // namespace

bool never_spans(std::string_view pattern, const CharacterPair& pair) {
  return SpanWalk(pattern, pair).never();
}

}  // namespace kintsugi::text

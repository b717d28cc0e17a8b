#include "kintsugi/text/common_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "kintsugi/text/pattern_sets.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

constexpr size_t kMostRanges = 96;  // PCRE2 searches those of a set linearly
constexpr int kMostRepeats = 1000, kMostDepth = 50;

constexpr std::string_view kCategories[] = {"L",  "M",  "N",  "P",  "S",  "Z",  "C",  "Lu", "Ll", "Lt",
                                            "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd",
                                            "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs"};
// Two letters that a single character may match when ignoring case.
constexpr std::string_view kLigatures[] = {"ff", "fi", "fl", "ss", "st"};

char lower_ascii(char c) {
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
}

// Writes sets of characters in PCRE2's syntax.
class SetSpeller {
 public:
  explicit SetSpeller(const Pcre2Members& members) : members_(members) {}

  std::optional<std::string> spell(const CodeSet& set) {
    const auto found = spelled_.find(spell_ranges(set));
    if (found != spelled_.end()) return found->second;
    auto positive = spell(set, false);
    auto negative = spell(~set, true);
    const bool better = negative && (!positive || negative->size() < positive->size());
    return spelled_[spell_ranges(set)] = better ? std::move(negative) : std::move(positive);
  }

 private:
  std::optional<std::string> spell(const CodeSet& set, bool negated) {
    CodeSet rest = set, library;
    std::string items;
    if (set.ranges().size() > 16) {
      for (const Category& c : categories()) {
        if (!(c.unmoved - set).empty() || (c.unmoved & rest).empty()) continue;
        items += fmt::format("\\p{{{}}}", c.name);
        library = library | c.unmoved | members_(c.name, moved());
        rest = rest - c.unmoved;
      }
    }
    const CodeSet missing = set - library, wrong = library - set;
    // Those below 256 take a single lookup.
    const CodeSet first = set & CodeSet{{0, 0xFF}};
    if (set.empty() || missing.ranges().size() + wrong.ranges().size() > kMostRanges) return std::nullopt;
    const std::string brackets = fmt::format("[{}{}{}]", negated ? "^" : "", spell_ranges(first | missing), items);
    if (spell_ranges(wrong).empty()) return brackets;
    return negated ? fmt::format("(?:{}|[{}])", brackets, spell_ranges(wrong))
                   : fmt::format("(?:(?![{}]){})", spell_ranges(wrong), brackets);
  }

  struct Category {
    std::string_view name;
    CodeSet unmoved;  // characters of it known to all versions
  };

  static const CodeSet& moved() {
    static const CodeSet set = moved_characters();
    return set;
  }
  static const std::vector<Category>& categories() {
    static const std::vector<Category> all = [] {
      std::vector<Category> list;
      for (const std::string_view name : kCategories) list.push_back({name, *find_unicode_set(name) - moved()});
      return list;
    }();
    return all;
  }

  const Pcre2Members& members_;
  std::map<std::string, std::optional<std::string>> spelled_;
};

struct Unknown {};  // thrown where a pattern leaves the common subset

class Translator {
 public:
  Translator(std::string_view pattern, const Pcre2Members& members) : pattern_(pattern), sets_(members) {}

  std::string translate() {
    alternatives(0);
    if (at_ < pattern_.size()) throw Unknown();
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  bool starts_with(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take_if(std::string_view text) {
    if (!starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_character() {
    const Character c = read_character(pattern_.substr(at_));
    if (c.size == 0 || c.code == 0) throw Unknown();
    at_ += c.size;
    return c.code;
  }

  // Each returns whether it can match the empty text.
  bool alternatives(int depth) {
    if (depth > kMostDepth) throw Unknown();
    bool nullable = false;
    while (true) {
      nullable |= sequence(depth);
      if (!take_if("|")) return nullable;
      out_ += '|';
    }
  }

  bool sequence(int depth) {
    bool nullable = true;
    before_.clear();
    while (at_ < pattern_.size() && peek() != '|' && peek() != ')') nullable &= element(depth);
    return nullable;
  }

  bool element(int depth) {
    bool is_look = false;
    bool nullable = atom(depth, is_look);
    const char c = peek();
    if (c == '?' || c == '*' || c == '+') {
      if (is_look || (nullable && c != '?')) throw Unknown();
      out_ += c;
      ++at_;
      if (peek() == '?' || peek() == '+') out_ += pattern_[at_++];
      nullable |= c != '+';
    } else if (c == '{') {
      if (is_look || nullable) throw Unknown();
      nullable |= repeat() == 0;
    }
    if (peek() == '?' || peek() == '*' || peek() == '+' || peek() == '{') throw Unknown();
    return nullable;
  }

  int number() {
    if (peek() < '0' || peek() > '9') throw Unknown();
    int value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + (peek() - '0');
      if (value > kMostRepeats) throw Unknown();
    }
    return value;
  }

  int repeat() {
    const size_t begin = at_++;
    const int least = number();
    int most = least;
    if (take_if(",")) most = peek() == '}' ? kMostRepeats : number();
    if (most < least || most == 0 || !take_if("}")) throw Unknown();
    out_ += pattern_.substr(begin, at_ - begin);
    return least;
  }

  bool atom(int depth, bool& is_look) {
    if (take_if("(")) return group(depth, is_look);
    CodeSet set;
    if (peek() == '[') {
      const auto brackets = read_brackets(pattern_, at_);
      if (!brackets) throw Unknown();
      set = brackets->negated ? ~brackets->set : brackets->set;
    } else if (take_if(".")) {
      set = ~CodeSet{{'\n', '\n'}};
    } else if (peek() == '\\') {
      const auto escaped = read_escape(pattern_, at_);
      if (!escaped) throw Unknown();
      set = *escaped;
    } else {
      constexpr std::string_view kOperators = "^$|?*+)]{}";
      if (kOperators.find(peek()) != kOperators.npos) throw Unknown();
      const char32_t c = take_character();
      set = {{c, c}};
    }
    if (ignore_case_) require_plain(set);
    if ((set - CodeSet{{0xD800, 0xDFFF}}).empty()) throw Unknown();
    const bool single = set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].last;
    if (single) {
      literal(set.ranges()[0].first);
    } else {
      const auto spelled = ignore_case_ ? "[" + spell_ranges(set) + "]" : sets_.spell(set);
      if (!spelled) throw Unknown();
      out_ += *spelled;
    }
    return false;
  }

  void literal(char32_t c) {
    const bool plain = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain || c == ' ')
      append_character(c, out_);
    else
      fmt::format_to(std::back_inserter(out_), "\\x{{{:x}}}", static_cast<uint32_t>(c));
  }

  // When ignoring case: a few ASCII characters, no two adjacent ones of which form a ligature.
  void require_plain(const CodeSet& set) {
    std::string now;
    for (const auto& [first, last] : set.ranges()) {
      if (last >= 0x80 || last - first > 30) throw Unknown();
      for (char32_t c = first; c <= last; ++c) now += lower_ascii(static_cast<char>(c));
    }
    for (const std::string_view two : kLigatures)
      if (before_.find(two[0]) != before_.npos && now.find(two[1]) != now.npos) throw Unknown();
    before_ = now;
  }

  bool group(int depth, bool& is_look) {
    if (ignore_case_) throw Unknown();
    std::string_view opening = "(?:";
    bool nullable_by_kind = false;
    if (take_if("?")) {
      if (take_if("i:")) {
        opening = "(?i:";
        ignore_case_ = true;
      } else if (take_if(">")) {
        opening = "(?>";
      } else if (take_if("=")) {
        opening = "(?=";
      } else if (take_if("!")) {
        opening = "(?!";
      } else if (!take_if(":")) {
        throw Unknown();
      }
      is_look = nullable_by_kind = opening == "(?=" || opening == "(?!";
    } else if (peek() == '*') {
      throw Unknown();
    }
    out_ += opening;
    const bool nullable = alternatives(depth + 1);
    if (!take_if(")")) throw Unknown();
    out_ += ')';
    ignore_case_ = false;
    return nullable || nullable_by_kind;
  }

  std::string_view pattern_;
  SetSpeller sets_;
  size_t at_ = 0;
  std::string out_;
  bool ignore_case_ = false;
  std::string before_;  // with ignore_case_: what the previous atom matches, in lower case
};

}  // namespace

std::optional<std::string> spell_pcre2(std::string_view pattern, const Pcre2Members& members) {
  try {
    return Translator(pattern, members).translate();
  } catch (const Unknown&) {
    return std::nullopt;
  }
}

}  // namespace kintsugi::text

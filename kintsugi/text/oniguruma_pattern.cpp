#include "kintsugi/text/oniguruma_pattern.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/code_set.h"
#include "kintsugi/text/pattern_sets.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

// Letters whose other case is newer than Unicode 14.
constexpr char32_t kNewCases[][2] = {{0x1C89, 0x1C8A}, {0xA7CB, 0x0264}, {0xA7CC, 0xA7CD},
                                     {0xA7DA, 0xA7DB}, {0xA7DC, 0x019B}, {0x10D50, 0x10D70}};
constexpr char32_t kLastGaray = 0x10D65;  // from U+10D50, all capitals, with the small letter 32 code points later

CodeSet with_new_cases(const CodeSet& set) {
  std::vector<CodeSet::Range> more;
  const auto add = [&](char32_t a, char32_t b) {
    if (set.contains(a)) more.push_back({b, b});
    if (set.contains(b)) more.push_back({a, a});
  };
  for (const auto& [upper, lower] : kNewCases) add(upper, lower);
  for (char32_t c = 0x10D50; c <= kLastGaray; ++c) add(c, c + 0x20);
  return more.empty() ? set : set | CodeSet(std::move(more));
}

// Brackets are never empty. Any character is not spelled as brackets, which without case would also match "ss" for "ß";
// negated ones do not.
std::string spell_set(const CodeSet& set, bool negated) {
  const std::string ranges = spell_ranges(set);
  if (!ranges.empty()) return (negated ? "[^" : "[") + ranges + "]";
  return negated ? "(?m:.)" : "[^\\x{0}-\\x{10ffff}]";
}

// A named set: \p{L}, \w.
struct Named {
  CodeSet set;
  bool negated = false;
};

class Speller {
 public:
  Speller(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {}

  OnigurumaPattern spell() {
    options_.push_back({});
    while (at_ < pattern_.size()) step();
    return {std::move(out_), unread_};
  }

 private:
  struct Options {
    bool ignore_case = false, extended = false;
    bool behind = false;  // within a look-behind, where a look-ahead is limited to the look-behind itself
    AsciiSets ascii = {};
  };

  const Options& options() const { return options_.back(); }
  std::string_view rest() const { return pattern_.substr(at_); }
  char peek(size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  std::string_view take(size_t n) {
    const std::string_view taken = pattern_.substr(at_, n);
    at_ += taken.size();
    return taken;
  }
  std::string_view take_character() {
    const Character c = read_character(rest());
    return take(c.size > 0 ? c.size : 1);
  }
  // Up to and including `end`, or everything left.
  std::string_view take_through(char end) {
    const size_t found = pattern_.find(end, at_);
    return take(found == pattern_.npos ? found : found + 1 - at_);
  }

  void step() {
    const char c = peek();
    if (c == '\\') return escape();
    if (c == '[') return void(out_ += spell_class());
    if (c == '(') return open();
    if (c == ')' && options_.size() > 1) options_.pop_back();
    if (options().extended && c == '#') return void(out_ += take_through('\n'));
    const std::string_view character = take_character();
    literal(read_character(character).code, character);
  }

  void literal(char32_t code, std::string_view spelled) {
    const CodeSet set = {{code, code}};
    const bool new_case = options().ignore_case && code >= 0x80 && with_new_cases(set) != set;
    out_ += new_case ? "[" + spell_ranges(with_new_cases(set)) + "]" : std::string(spelled);
  }

  void open() {
    if (rest().starts_with("(?#")) {
      while (at_ < pattern_.size()) {
        const char c = peek();
        out_ += take(c == '\\' ? 2 : 1);
        if (c == ')') break;
      }
      return;
    }
    options_.push_back(options());
    out_ += take(1);
    if (peek() != '?') return;
    out_ += take(1);
    options_.back().behind |= rest().starts_with("<=") || rest().starts_with("<!");
    const size_t letters = rest().find_first_not_of("imxaWDSPIL-{}gwyuC");
    const char end = letters == std::string_view::npos ? '\0' : rest()[letters];
    if (letters == 0 || (end != ')' && end != ':')) return;  // another kind of group: its name or sign is plain text
    const std::string_view words = take(letters);
    out_ += words;
    out_ += take(1);
    if (end == ')') options_.pop_back();  // in effect up to the end of the enclosing group
    set_options(options_.back(), words);
  }

  static void set_options(Options& o, std::string_view words) {
    bool on = true;
    for (size_t i = 0; i < words.size(); ++i) {
      switch (words[i]) {
        case '-':
          on = false;
          break;
        case 'i':
          o.ignore_case = on;
          break;
        case 'x':
          o.extended = on;
          break;
        case 'W':
          o.ascii.word = on;
          break;
        case 'D':
          o.ascii.digit = on;
          break;
        case 'S':
          o.ascii.space = on;
          break;
        case 'P':
          o.ascii = {.word = on, .digit = on, .space = on, .posix = on};
          break;
        case '{':
          i = words.find('}', i);
          break;
        default:
          break;
      }
      if (i == words.npos) return;
    }
  }

  // The part of a POSIX set that the options leave.
  CodeSet limited(CodeSet set, std::string_view posix_name) const {
    const AsciiSets& a = options().ascii;
    const bool ascii = a.posix || (posix_name == "word" && a.word) || (posix_name == "digit" && a.digit) ||
                       (posix_name == "space" && a.space);
    return ascii ? set & CodeSet{{0, 0x7F}} : set;
  }

  CodeSet property(std::string_view name) const {
    auto set = find_unicode_set(name);
    if (!set)
      throw base::UserError("tokenizer", "{}: the pattern {} names the property {}, which Unicode 16.0 does not have",
                            where_, base::in_quotes(pattern_), base::in_quotes(name));
    return *std::move(set);
  }

  // At a backslash: takes an escape that names a set, or nothing.
  bool take_named(Named& named) {
    const char c = peek(1);
    switch (c) {
      case 'w':
      case 'W':
        named.set = limited(word_characters(), "word");
        break;
      case 'd':
      case 'D':
        named.set = limited(property("digit"), "digit");
        break;
      case 's':
      case 'S':
        named.set = limited(property("space"), "space");
        break;
      case 'p':
      case 'P':
        if (peek(2) != '{') return false;  // a letter
        break;
      default:
        return false;
    }
    named.negated = c == 'W' || c == 'D' || c == 'S' || c == 'P';
    take(2);
    if (c != 'p' && c != 'P') return true;
    std::string_view name = take_through('}').substr(1);
    if (name.ends_with('}')) name.remove_suffix(1);
    if (name.starts_with('^')) {
      name.remove_prefix(1);
      named.negated = !named.negated;
    }
    const std::string plain = plain_set_name(name);
    named.set = plain == "word" ? word_characters() : property(name);
    if (is_posix_name(plain) && plain != "punct") named.set = limited(std::move(named.set), plain);
    return true;
  }

  void escape() {
    const char c = peek(1), next = peek(2);
    const bool repeated = next == '?' || next == '*' || next == '+' || next == '{';  // an error, left to the library
    if ((c == 'b' || c == 'B') && options().behind) {
      throw base::UserError("tokenizer", "{}: the pattern {} has \\{} in a look-behind, which is not supported", where_,
                            base::in_quotes(pattern_), c);
    }
    if ((c == 'b' || c == 'B') && !repeated) {
      const std::string word = "(?-i:[" + spell_ranges(limited(word_characters(), "word")) + "])";
      out_ += c == 'b' ? fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word)
                       : fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word);
      take(2);
      return;
    }
    if (c == 'R' && !options().behind) {  // the library's own of 6.9.8 is not found after a repeat
      take(2);
      out_ += R"((?>\x0D\x0A|[\x0A-\x0D\x{85}\x{2028}\x{2029}]))";
      return;
    }
    Named named;
    if (!take_named(named)) {
      if (c == 'p' || c == 'P') return take(1), void(out_ += take(1));  // a letter without braces
      const std::string_view spelled = take_escape();
      return literal(code_of(spelled), spelled);
    }
    // The library does not ignore case here outside brackets; in brackets it would also match the letters of a
    // ligature.
    const std::string brackets = spell_set(named.set, named.negated);
    out_ += options().ignore_case ? "(?-i:" + brackets + ")" : brackets;
  }

  // The code of a character, or of an escape by number; 0 for another escape.
  static char32_t code_of(std::string_view spelled) {
    if (!spelled.starts_with('\\')) return read_character(spelled).code;
    uint32_t code = 0;
    const bool wide = spelled.starts_with("\\x{") && spelled.ends_with('}');
    if (wide) std::from_chars(spelled.data() + 3, spelled.data() + spelled.size() - 1, code, 16);
    return code;
  }

  // Takes another kind of escape as a whole, so that nothing in it is mistaken for an operator.
  std::string_view take_escape() {
    const size_t begin = at_;
    take(1);
    const char c = peek();
    take_character();
    if ((c == 'x' || c == 'o') && peek() == '{') take_through('}');
    if (c == 'c' && at_ < pattern_.size()) peek() == '\\' ? void(take_escape()) : void(take_character());
    if ((c == 'C' || c == 'M') && peek() == '-') {
      take(1);
      peek() == '\\' ? void(take_escape()) : void(take_character());
    }
    return pattern_.substr(begin, at_ - begin);
  }

  // At "[". Passes the expanded set to the library, since releases differ in how they join and negate sets of
  // multi-byte characters.
  std::string spell_class() {
    const Options& o = options();
    if (const auto read = read_brackets(pattern_, at_, o.ascii))
      return spell_set(o.ignore_case ? with_new_cases(read->set) : read->set, read->negated);
    unread_ = true;
    return std::string(take(pattern_.npos));
  }

  std::string_view pattern_;
  std::string_view where_;
  size_t at_ = 0;
  std::string out_;
  std::vector<Options> options_;
  bool unread_ = false;
};

}  // namespace

OnigurumaPattern spell_oniguruma(std::string_view pattern, std::string_view where) {
  return Speller(pattern, where).spell();
}

}  // namespace kintsugi::text

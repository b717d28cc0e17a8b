#include "kintsugi/text/pattern_sets.h"

#include <algorithm>
#include <iterator>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

constexpr int kMostBrackets = 50;  // maximum nesting

struct Unread {};

// What an escape represents: a named set, or a single character.
struct Escaped {
  std::optional<CodeSet> set = {};
  char32_t code = 0;
};

class SetReader {
 public:
  SetReader(std::string_view pattern, size_t at, AsciiSets ascii) : pattern_(pattern), at_(at), ascii_(ascii) {}

  size_t at() const { return at_; }

  // At "[". In Oniguruma, a negated set of ASCII within another loses characters beyond ASCII.
  Brackets brackets(int depth = 0, bool within_negated = false) {
    if (depth > kMostBrackets || !take_if("[")) throw Unread();
    const bool negated = take_if("^");
    if (negated && within_negated && (ascii_.word || ascii_.digit || ascii_.space || ascii_.posix)) throw Unread();
    Operand operand;
    std::optional<CodeSet> all;
    if (peek() == ']') {  // a literal, if the brackets end later
      if (pattern_.find(']', at_ + 1) == pattern_.npos) throw Unread();
      operand.add(take_character());
    }
    while (!take_if("]")) {
      if (at_ >= pattern_.size()) throw Unread();
      if (take_if("&&")) {
        operand.end();
        all = all ? *all & operand.set : operand.set;
        operand = {};
      } else if (starts_with("[:") && is_posix(at_)) {
        operand.add(posix());
      } else if (peek() == '[') {
        operand.end();
        operand.state = State::complete;
        const Brackets inner = brackets(depth + 1, negated || within_negated);
        operand.set = operand.set | (inner.negated ? ~inner.set : inner.set);
      } else if (peek() == '-') {
        ++at_;
        dash(operand);
      } else if (peek() == '\\') {
        const Escaped escaped = escape(true);
        escaped.set ? operand.add(*escaped.set) : operand.add(escaped.code);
      } else {
        operand.add(take_character());
      }
    }
    operand.end();
    return {all ? *all & operand.set : operand.set, negated};
  }

  // At "\".
  Escaped escape(bool in_brackets) {
    ++at_;
    const char c = peek();
    const bool names_set = (c == 'p' || c == 'P') && (!in_brackets || pattern_.substr(at_ + 1).starts_with('{'));
    if (names_set) return {property(in_brackets)};
    if (at_ == pattern_.size()) throw Unread();
    if (static_cast<uint8_t>(c) >= 0x80) return {{}, take_character()};
    ++at_;
    const bool negated = c == 'W' || c == 'D' || c == 'S' || c == 'H';
    switch (c) {
      case 'w':
      case 'W':
        return {either(limited(in_brackets ? named("word") : word_characters(), ascii_.word), negated)};
      case 'd':
      case 'D':
        return {either(limited(named("digit"), ascii_.digit), negated)};
      case 's':
      case 'S':
        return {either(limited(named("space"), ascii_.space), negated)};
      case 'h':
      case 'H':
        return {either(named("xdigit"), negated)};
      case 'n':
        return {{}, '\n'};
      case 'r':
        return {{}, '\r'};
      case 't':
        return {{}, '\t'};
      case 'f':
        return {{}, '\f'};
      case 'v':
        return {{}, '\v'};
      case 'x':
        if (peek() != '{') return {{}, hex(2, 2, 0x7F)};
        ++at_;
        return {{}, hex(1, 8, 0x10FFFF, "}")};
      case 'u':
        return {{}, hex(4, 4, 0xFFFF)};
      default:
        break;
    }
    constexpr std::string_view kSigns = R"(!"#$%&()*+,-./:;=?@[\]^_{|}~ pP)";  // \pL is two letters
    if (kSigns.find(c) == kSigns.npos) throw Unread();
    return {{}, static_cast<char32_t>(c)};
  }

 private:
  // As in Oniguruma's parser: whether a pending character may begin a range.
  enum class State { start, value, range, complete };

  struct Operand {
    CodeSet set = {};
    State state = State::start;
    std::optional<char32_t> from = {};  // of a value that is a character

    void add(char32_t code) {
      end();
      if (state == State::range) {
        if (*from > code) throw Unread();
        set = set | CodeSet{{*from, code}};
        state = State::complete;
        from.reset();
        return;
      }
      state = State::value;
      from = code;
    }
    void add(const CodeSet& named) {
      if (state == State::range) throw Unread();
      end();
      set = set | named;
      state = State::value;
      from.reset();
    }
    // Adds a pending character to the set.
    void end() {
      if (state == State::value && from) set = set | CodeSet{{*from, *from}};
    }
  };

  void dash(Operand& operand) {
    const bool last = peek() == ']' || starts_with("&&");
    if (operand.state != State::value || last) return operand.add(U'-');
    if (!operand.from) throw Unread();  // a set cannot end a range
    operand.state = State::range;
  }

  CodeSet property(bool in_brackets) {
    bool negated = pattern_[at_++] == 'P';
    if (!take_if("{")) throw Unread();
    const size_t end = pattern_.find('}', at_);
    if (end == pattern_.npos) throw Unread();
    if (take_if("^")) negated = !negated;
    const std::string name = plain_set_name(pattern_.substr(at_, end - at_));
    auto set = find_unicode_set(name);
    if (!set) throw Unread();
    at_ = end + 1;
    if (name == "word" && !in_brackets) set = word_characters();
    if (name != "punct") set = limited_by_name(*std::move(set), name);
    return either(*set, negated);
  }

  // At "[:", whether a POSIX name follows.
  bool is_posix(size_t at) const {
    const size_t end = pattern_.find(":]", at + 2);
    if (end == pattern_.npos) return false;
    std::string_view name = pattern_.substr(at + 2, end - at - 2);
    if (name.starts_with('^')) name.remove_prefix(1);
    return is_posix_name(name);
  }

  CodeSet posix() {
    const size_t end = pattern_.find(":]", at_);
    std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    at_ = end + 2;
    return either(limited_by_name(named(name == "punct" ? "posixpunct" : name), name), negated);
  }

  CodeSet limited_by_name(CodeSet set, std::string_view name) const {
    if (!is_posix_name(name)) return set;
    return limited(std::move(set), ascii_.posix || (name == "word" && ascii_.word) ||
                                       (name == "digit" && ascii_.digit) || (name == "space" && ascii_.space));
  }
  static CodeSet limited(CodeSet set, bool ascii) { return ascii ? set & CodeSet{{0, 0x7F}} : set; }
  static CodeSet either(const CodeSet& set, bool negated) { return negated ? ~set : set; }
  static CodeSet named(std::string_view name) { return *find_unicode_set(name); }

  char32_t hex(int least, int most, char32_t largest, std::string_view behind = "") {
    constexpr std::string_view kDigits = "0123456789abcdef";
    uint64_t code = 0;
    int digits = 0;
    for (; digits < most; ++digits, ++at_) {
      const char c = peek();
      const size_t value = kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 'a' - 'A') : c);
      if (value == kDigits.npos) break;
      code = code * 16 + value;
    }
    if (digits < least || code > largest || (code >= 0xD800 && code <= 0xDFFF) || !take_if(behind)) throw Unread();
    return static_cast<char32_t>(code);
  }

  char peek() const { return at_ < pattern_.size() ? pattern_[at_] : '\0'; }
  bool starts_with(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take_if(std::string_view text) {
    if (!starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_character() {
    const Character c = read_character(pattern_.substr(at_));
    if (c.size == 0) throw Unread();
    at_ += c.size;
    return c.code;
  }

  std::string_view pattern_;
  size_t at_;
  AsciiSets ascii_;
};

}  // namespace

std::optional<Brackets> read_brackets(std::string_view pattern, size_t& at, AsciiSets ascii) {
  try {
    SetReader reader(pattern, at, ascii);
    Brackets brackets = reader.brackets();
    at = reader.at();
    return brackets;
  } catch (const Unread&) {
    return std::nullopt;
  }
}

std::optional<CodeSet> read_escape(std::string_view pattern, size_t& at) {
  try {
    SetReader reader(pattern, at, {});
    const Escaped escaped = reader.escape(false);
    at = reader.at();
    return escaped.set ? *escaped.set : CodeSet{{escaped.code, escaped.code}};
  } catch (const Unread&) {
    return std::nullopt;
  }
}

bool is_posix_name(std::string_view name) {
  constexpr std::string_view kNames[] = {"alnum", "alpha", "ascii", "blank", "cntrl", "digit",  "graph",
                                         "lower", "print", "punct", "space", "upper", "xdigit", "word"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

std::string plain_set_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
  return plain;
}

}  // namespace kintsugi::text

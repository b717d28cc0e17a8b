// Sets of characters, and those that Unicode 16.0 names: the version of the patterns of Hugging Face's tokenizers.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::text {

class CodeSet {
 public:
  struct Range {
    char32_t first, last;
    bool operator==(const Range&) const = default;
  };

  CodeSet() = default;
  CodeSet(std::initializer_list<Range> ranges);
  explicit CodeSet(std::vector<Range> ranges);  // in any order, may overlap

  const std::vector<Range>& ranges() const { return ranges_; }  // sorted, with gaps between
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t code) const;
  bool operator==(const CodeSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

CodeSet operator|(const CodeSet& a, const CodeSet& b);
CodeSet operator&(const CodeSet& a, const CodeSet& b);
CodeSet operator-(const CodeSet& a, const CodeSet& b);
CodeSet operator~(const CodeSet& a);  // within 0 to U+10FFFF

// A property by the names that Oniguruma knows ("L", "Letter", "Han", "In_Thai", "alnum"); case, spaces, "-" and "_"
// do not matter. Nothing for another name.
std::optional<CodeSet> find_unicode_set(std::string_view name);

// \w of a pattern outside brackets, which unlike [\w] has the fractions and superscripts of Latin-1.
CodeSet word_characters();
// Characters of another category, or none, in version 14, or in a version after 16: where libraries may differ.
CodeSet moved_characters();

// "\x{41}-\x{5a}..." for use within brackets. Without surrogates, which no text has, and which libraries refuse.
std::string spell_ranges(const CodeSet& set);

}  // namespace kintsugi::text

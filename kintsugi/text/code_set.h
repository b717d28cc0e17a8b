// Sets of characters, and the named sets of Unicode 16.0: the version of the patterns of Hugging Face's tokenizers.
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

  const std::vector<Range>& ranges() const { return ranges_; }  // sorted and disjoint, with gaps
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

// Finds a property by Oniguruma's names ("L", "Letter", "Han", "In_Thai", "alnum"); ignores case, spaces, "-" and "_".
// Nothing for an unknown name.
std::optional<CodeSet> find_unicode_set(std::string_view name);

// \w of a pattern outside brackets, which unlike [\w] includes the fractions and superscripts of Latin-1.
CodeSet word_characters();
// Characters of another category, or none, in version 14, or in a version after 16: libraries may differ on these.
CodeSet moved_characters();

// "\x{41}-\x{5a}..." for use within brackets. Excludes surrogates, which texts never contain and libraries reject.
std::string spell_ranges(const CodeSet& set);

}  // namespace kintsugi::text

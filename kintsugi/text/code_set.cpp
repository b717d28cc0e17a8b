#include "kintsugi/text/code_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "kintsugi/base/error.h"
#include "kintsugi/text/unicode_tables.h"

namespace kintsugi::text {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr std::string_view kNumberDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+,-./:;<=>@[]^_`{|}~";
constexpr size_t kHalf = kNumberDigits.size() / 2;

CodeSet decode_ranges(std::string_view text) {
  uint8_t value_of[128] = {};
  for (size_t i = 0; i < kNumberDigits.size(); ++i) value_of[static_cast<uint8_t>(kNumberDigits[i])] = static_cast<uint8_t>(i);
  std::vector<char32_t> ends;
  char32_t at = 0, delta = 0, weight = 1;
  for (const char c : text) {
    const size_t value = value_of[static_cast<uint8_t>(c)];
    delta += static_cast<char32_t>(value % kHalf) * weight;
    weight *= kHalf;
    if (value < kHalf) continue;
    ends.push_back(at += delta);
    delta = 0;
    weight = 1;
  }
  std::vector<CodeSet::Range> ranges;
  for (size_t i = 0; i + 1 < ends.size(); i += 2) ranges.push_back({ends[i], ends[i + 1]});
  return CodeSet(std::move(ranges));
}

CodeSet named(std::string_view name) {
  auto set = find_unicode_set(name);
  base::require(set.has_value(), "tokenizer", "the tables lack {}", name);
  return *std::move(set);
}

}  // namespace

CodeSet::CodeSet(std::initializer_list<Range> ranges) : CodeSet(std::vector<Range>(ranges)) {}

CodeSet::CodeSet(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  for (const Range& r : ranges) {
    if (!ranges_.empty() && r.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, r.last);
    else
      ranges_.push_back(r);
  }
}

bool CodeSet::contains(char32_t code) const {
  const auto next =
      std::upper_bound(ranges_.begin(), ranges_.end(), code, [](char32_t c, const Range& r) { return c < r.first; });
  return next != ranges_.begin() && code <= std::prev(next)->last;
}

CodeSet operator|(const CodeSet& a, const CodeSet& b) {
  std::vector<CodeSet::Range> all = a.ranges();
  all.insert(all.end(), b.ranges().begin(), b.ranges().end());
  return CodeSet(std::move(all));
}

CodeSet operator&(const CodeSet& a, const CodeSet& b) {
  std::vector<CodeSet::Range> both;
  for (size_t i = 0, k = 0; i < a.ranges().size() && k < b.ranges().size();) {
    const CodeSet::Range x = a.ranges()[i], y = b.ranges()[k];
    const char32_t first = std::max(x.first, y.first), last = std::min(x.last, y.last);
    if (first <= last) both.push_back({first, last});
    x.last < y.last ? ++i : ++k;
  }
  return CodeSet(std::move(both));
}

CodeSet operator-(const CodeSet& a, const CodeSet& b) {
  return a & ~b;
}

CodeSet operator~(const CodeSet& a) {
  std::vector<CodeSet::Range> rest;
  char32_t next = 0;
  for (const CodeSet::Range& r : a.ranges()) {
    if (r.first > next) rest.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLast) rest.push_back({next, kLast});
  return CodeSet(std::move(rest));
}

std::optional<CodeSet> find_unicode_set(std::string_view name) {
  std::string plain = " ";
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
  plain += ' ';
  for (const auto& table : {std::span(kUnicodeSets1, kNumUnicodeSets1), std::span(kUnicodeSets2, kNumUnicodeSets2),
                            std::span(kUnicodeSets3, kNumUnicodeSets3), std::span(kUnicodeSets4, kNumUnicodeSets4)}) {
    for (const UnicodeSet& set : table) {
      const std::string_view names = set.names;
      if (names.starts_with(std::string_view(plain).substr(1)) || names.find(plain) != names.npos)
        return decode_ranges(set.ranges);
    }
  }
  return std::nullopt;
}

CodeSet word_characters() {
  return named("word") | CodeSet{{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}};
}

CodeSet moved_characters() {
  return named("+moved");
}

std::string spell_ranges(const CodeSet& set) {
  std::string text;
  const CodeSet valid = set - CodeSet{{0xD800, 0xDFFF}};
  for (const auto& [first, last] : valid.ranges()) {
    fmt::format_to(std::back_inserter(text), "\\x{{{:x}}}", static_cast<uint32_t>(first));
    if (last > first) fmt::format_to(std::back_inserter(text), "-\\x{{{:x}}}", static_cast<uint32_t>(last));
  }
  return text;
}

}  // namespace kintsugi::text

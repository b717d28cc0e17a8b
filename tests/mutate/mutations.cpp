#include "tests/mutate/mutations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>
#include <string_view>

namespace kintsugi::tests {
namespace {

struct Range {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

struct Input {
  const std::vector<std::string>& others;
  Random& random;

  template <typename T, size_t n>
  const T& pick(const std::array<T, n>& values) {
    return values[random.below(n)];
  }
};

constexpr std::array<std::string_view, 26> kNumbers = {"0",
                                                       "-0",
                                                       "1",
                                                       "-1",
                                                       "2",
                                                       "1e999",
                                                       "-1e999",
                                                       "1e-999",
                                                       "0.5",
                                                       "1.0",
                                                       "NaN",
                                                       "nan",
                                                       "inf",
                                                       "-Infinity",
                                                       "255",
                                                       "65536",
                                                       "2147483647",
                                                       "2147483648",
                                                       "4294967295",
                                                       "4294967296",
                                                       "9223372036854775807",
                                                       "9223372036854775808",
                                                       "-9223372036854775808",
                                                       "18446744073709551615",
                                                       "18446744073709551616",
                                                       "100000000000000000000000000000000000000000"};
constexpr std::array<std::string_view, 14> kValues = {"null",        "true", "false",       "\"\"",       "\"text\"",
                                                      "[]",          "{}",   "[1]",         "{\"a\": 1}", "{a = 1}",
                                                      "\"\\ud800\"", "",     "\"\\u0000\"", "1979-05-27"};
constexpr std::array<uint64_t, 12> kWords = {0,          1,          0x7f,       0xff,      0x7fff,     0xffff,
                                             0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, 1ull << 63, UINT64_MAX};

Range some_range(const std::string& content, Random& random) {
  if (content.empty()) return {};
  const size_t most = random.one_in(3) ? content.size() : std::min<size_t>(content.size(), 64);
  const size_t begin = random.below(content.size());
  return {begin, std::min(content.size(), begin + 1 + random.below(most))};
}

// The first run of characters of this kind at or after a position, wrapping around.
template <typename F>
std::optional<Range> find_run(const std::string& content, Random& random, F&& is) {
  const size_t from = random.below(content.size());
  for (size_t i = 0; i < content.size(); ++i) {
    const size_t begin = (from + i) % content.size();
    if (!is(content[begin]) || (begin > 0 && is(content[begin - 1]))) continue;
    size_t end = begin;
    while (end < content.size() && is(content[end])) ++end;
    return Range{begin, end};
  }
  return std::nullopt;
}

// The JSON or TOML value that starts here, without validating its content.
Range value_at(const std::string& content, size_t begin) {
  size_t end = begin;
  int depth = 0;
  bool quoted = false;
  for (; end < content.size(); ++end) {
    const char c = content[end];
    if (quoted) {
      if (c == '\\') ++end;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '[' || c == '{') ++depth;
    const bool closes = c == ']' || c == '}';
    if (depth == 0 && (closes || c == ',' || c == '\n')) break;
    if (closes && --depth == 0) {
      ++end;
      break;
    }
  }
  return {begin, std::min(end, content.size())};
}

std::optional<Range> some_value(const std::string& content, Random& random) {
  const size_t from = random.below(content.size());
  for (size_t i = 0; i < content.size(); ++i) {
    const size_t at = (from + i) % content.size();
    if (content[at] != ':' && content[at] != '=' && content[at] != '[' && content[at] != ',') continue;
    const size_t begin = content.find_first_not_of(" \t\n", at + 1);
    if (begin == content.npos) continue;
    const Range value = value_at(content, begin);
    if (value.size() > 0) return value;
  }
  return std::nullopt;
}

void replace(std::string& content, Range range, std::string_view by) {
  content.replace(range.begin, range.size(), by);
}

// Of any content.

void flip_bit(std::string& content, Input in) {
  char& c = content[in.random.below(content.size())];
  c = static_cast<char>(c ^ (1 << in.random.below(8)));
}

void change_byte(std::string& content, Input in) {
  content[in.random.below(content.size())] = static_cast<char>(in.random.word());
}

void insert_bytes(std::string& content, Input in) {
  std::string bytes(1 + in.random.below(in.random.one_in(10) ? 1000 : 8), '\0');
  const bool same = in.random.one_in(2);
  const uint64_t word = in.random.word();
  for (char& c : bytes) c = static_cast<char>(same ? word : in.random.word());
  content.insert(in.random.below(content.size() + 1), bytes);
}

void delete_range(std::string& content, Input in) {
  replace(content, some_range(content, in.random), "");
}

void truncate(std::string& content, Input in) {
  content.resize(in.random.below(content.size()));
}

void repeat_range(std::string& content, Input in) {
  const Range range = some_range(content, in.random);
  content.insert(in.random.below(content.size() + 1), content.substr(range.begin, range.size()));
}

void splice(std::string& content, Input in) {
  if (in.others.empty()) return;
  const std::string& other = in.others[in.random.below(in.others.size())];
  const Range from = some_range(other, in.random);
  const Range to = in.random.one_in(2) ? Range{from.begin, from.end} : some_range(content, in.random);
  const Range within = {std::min(to.begin, content.size()), std::min(to.end, content.size())};
  replace(content, within, std::string_view(other).substr(from.begin, from.size()));
}

void write_word(std::string& content, Input in) {
  const uint64_t word = in.pick(kWords) + (in.random.one_in(4) ? in.random.below(16) : 0);
  const size_t size = size_t{1} << in.random.below(4);
  if (content.size() < size) return;
  size_t at = in.random.below(content.size() - size + 1);
  if (in.random.one_in(2)) at = std::min(at, size_t{1} << in.random.below(7));  // where headers are
  std::memcpy(content.data() + std::min(at, content.size() - size), &word, size);
}

// Of text.

void replace_number(std::string& content, Input in) {
  const auto is = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '-'; };
  if (const auto found = find_run(content, in.random, is)) replace(content, *found, in.pick(kNumbers));
}

void replace_value(std::string& content, Input in) {
  const auto found = some_value(content, in.random);
  if (found) replace(content, *found, in.random.one_in(2) ? in.pick(kValues) : in.pick(kNumbers));
}

void replace_by_value(std::string& content, Input in) {
  const auto to = some_value(content, in.random);
  const auto from = some_value(content, in.random);
  if (to && from) replace(content, *to, content.substr(from->begin, from->size()));
}

// Duplicates a member of an object, or a line.
void repeat_key(std::string& content, Input in) {
  const size_t from = in.random.below(content.size());
  const size_t colon = content.find("\":", from);
  if (colon != content.npos && colon > 0 && !in.random.one_in(4)) {
    const size_t begin = content.rfind('"', colon - 1);
    const size_t at = content.find_first_not_of(" \t\n", colon + 2);
    if (begin == content.npos || at == content.npos) return;
    content.insert(begin, content.substr(begin, value_at(content, at).end - begin) + ",");
    return;
  }
  const size_t begin = content.rfind('\n', from) == content.npos ? 0 : content.rfind('\n', from) + 1;
  const size_t end = std::min(content.find('\n', begin), content.size() - 1) + 1;
  content.insert(begin, content.substr(begin, end - begin));
}

void remove_key(std::string& content, Input in) {
  const size_t colon = content.find("\":", in.random.below(content.size()));
  if (colon == content.npos || colon == 0) return;
  const size_t begin = content.rfind('"', colon - 1);
  const size_t at = content.find_first_not_of(" \t\n", colon + 2);
  if (begin == content.npos || at == content.npos) return;
  size_t end = value_at(content, at).end;
  end += end < content.size() && content[end] == ',' ? 1 : 0;
  replace(content, {begin, end}, "");
}

void nest(std::string& content, Input in) {
  constexpr std::array<std::string_view, 3> kOpen = {"[", "{\"a\":", "{a="}, kClose = {"]", "}", "}"};
  const size_t how = in.random.below(kOpen.size());
  const size_t depth = in.random.one_in(4) ? 100000 : 1 + in.random.below(300);
  std::string open, close;
  for (size_t i = 0; i < depth; ++i) open += kOpen[how];
  if (!in.random.one_in(3))
    for (size_t i = 0; i < depth; ++i) close += kClose[how];
  const auto value = some_value(content, in.random).value_or(Range{0, content.size()});
  replace(content, value, open + content.substr(value.begin, value.size()) + close);
}

void swap_case(std::string& content, Input in) {
  char& c = content[in.random.below(content.size())];
  if (std::isalpha(static_cast<unsigned char>(c))) c = static_cast<char>(c ^ 0x20);
}

using Mutation = void (*)(std::string&, Input);
constexpr std::array<Mutation, 8> kOfAny = {flip_bit, change_byte,  insert_bytes, delete_range,
                                            truncate, repeat_range, splice,       write_word};
constexpr std::array<Mutation, 9> kOfText = {replace_number,   replace_number, replace_value, replace_value,
                                             replace_by_value, repeat_key,     remove_key,    nest,
                                             swap_case};

}  // namespace

std::string mutate(std::string content, Content kind, const std::vector<std::string>& others, Random& random) {
  for (uint64_t left = random.one_in(2) ? 1 : 1 + random.below(3); left > 0; --left) {
    const Input in = {others, random};
    if (content.empty())
      content = others.empty() ? "0" : others[random.below(others.size())];
    else if (kind == Content::text && !random.one_in(3))
      kOfText[random.below(kOfText.size())](content, in);
    else
      kOfAny[random.below(kOfAny.size())](content, in);
  }
  return content;
}

}  // namespace kintsugi::tests

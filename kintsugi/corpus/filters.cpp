#include "kintsugi/corpus/filters.h"

#include <algorithm>
#include <array>
#include <functional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/json.h"
#include "kintsugi/corpus/words.h"
#include "kintsugi/data/corpus.h"

namespace kintsugi::corpus {
namespace {

size_t count_of(std::string_view text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

bool has_letter(std::string_view word) {
  return std::ranges::any_of(word, [](char c) {
    return static_cast<unsigned char>(c) >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

constexpr std::array<std::string_view, 8> kStopWords = {"the", "be", "to", "of", "and", "that", "have", "with"};

struct Statistics {
  size_t words = 0;
  size_t characters = 0;  // of words
  size_t with_letter = 0;
  size_t stop_words = 0;  // different ones
  size_t lines = 0;
  size_t bullets = 0;   // lines that begin with one
  size_t ellipses = 0;  // lines that end with one
};

bool is_bullet(std::string_view line) {
  const size_t at = line.find_first_not_of(" \t");
  if (at == line.npos) return false;
  line.remove_prefix(at);
  return line[0] == '-' || line[0] == '*' || line.starts_with("\u2022");
}

Statistics statistics_of(std::string_view text) {
  Statistics s;
  std::array<bool, kStopWords.size()> seen = {};
  for_each_word(text, [&](std::string_view word) {
    ++s.words;
    s.characters += static_cast<size_t>(
        std::ranges::count_if(word, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
    s.with_letter += has_letter(word);
    for (size_t i = 0; i < kStopWords.size(); ++i) seen[i] |= word == kStopWords[i];
  });
  s.stop_words = static_cast<size_t>(std::ranges::count(seen, true));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r' || line.back() == '\t')) line.remove_suffix(1);
    if (line.empty()) continue;
    ++s.lines;
    s.bullets += is_bullet(line);
    s.ellipses += line.ends_with("...") || line.ends_with("\u2026");
  }
  return s;
}

// A rule with the limits of Rae et al. 2021, section A.1.1.
struct Rule {
  Verdict verdict;
  bool (*fails)(std::string_view, const Statistics&);
};

double share(size_t part, size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

constexpr Rule kGopher[] = {
    {Verdict::words, [](std::string_view, const Statistics& s) { return s.words < 50 || s.words > 100'000; }},
    {Verdict::word_length,
     [](std::string_view, const Statistics& s) {
       const double mean = share(s.characters, s.words);
       return mean < 3 || mean > 10;
     }},
    {Verdict::symbols,
     [](std::string_view t, const Statistics& s) {
       return share(count_of(t, "#"), s.words) > 0.1 ||
              share(count_of(t, "...") + count_of(t, "\u2026"), s.words) > 0.1;
     }},
    {Verdict::bullets, [](std::string_view, const Statistics& s) { return share(s.bullets, s.lines) > 0.9; }},
    {Verdict::ellipses, [](std::string_view, const Statistics& s) { return share(s.ellipses, s.lines) > 0.3; }},
    {Verdict::letters, [](std::string_view, const Statistics& s) { return share(s.with_letter, s.words) < 0.8; }},
    {Verdict::stop_words, [](std::string_view, const Statistics& s) { return s.stop_words < 2; }},
};

// All strings in a JSON value, as one text each.
void for_each_text(const base::Json& value, const std::function<void(std::string_view)>& f) {
  if (value.is_text()) return f(value.text());
  if (value.is_list())
    for (const base::Json& item : value.list()) for_each_text(item, f);
  if (value.is_object())
    for (const base::Json& item : value.members()) for_each_text(item, f);
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, kVerdicts> kNames = {
      "kept",        "too short",    "too long",        "language",      "number of words",
      "word length", "symbols",      "bullet points",   "ellipses",      "words without letters",
      "stop words",  "contaminated", "exact duplicate", "near duplicate"};
  return kNames[static_cast<size_t>(verdict)];
}

Overlap::Overlap(const Decontaminate& spec) : words_(spec.words) {
  if (spec.paths.empty()) return;
  const data::Corpus files = data::list_corpus({.inputs = spec.paths, .field = "text"});  // lists *.jsonl in folders
  for (const data::CorpusFile& file : files.files) {
    std::string text;
    data::InputFile input(file);
    while (input.read(1 << 20, text) == 1 << 20) {
    }
    if (!data::is_jsonl_name(file.path)) {
      add(text);
      continue;
    }
    int64_t number = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = std::string_view(text).substr(at, end - at);
      at = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      for_each_text(base::Json::parse("prepare", file.path.string(), line, number),
                    [&](std::string_view part) { add(part); });
    }
  }
}

void Overlap::add(std::string_view text) {
  const std::vector<uint64_t> hashes = word_hashes(text);
  if (hashes.size() < static_cast<size_t>(words_)) return;  // too common to say anything
  for (const uint64_t run : shingles(hashes, words_)) runs_.insert(run);
}

bool Overlap::found_in(std::string_view text) const {
  if (runs_.empty()) return false;
  const std::vector<uint64_t> hashes = word_hashes(text);
  if (hashes.size() < static_cast<size_t>(words_)) return false;
  return std::ranges::any_of(shingles(hashes, words_), [&](uint64_t run) { return runs_.contains(run); });
}

Verdict judge(std::string_view text, const Filter& filter, const Overlap& overlap) {
  const auto bytes = static_cast<int64_t>(text.size());
  if (bytes < filter.min_bytes) return Verdict::too_short;
  if (bytes > filter.max_bytes) return Verdict::too_long;
  if (filter.gopher) {
    const Statistics s = statistics_of(text);
    for (const Rule& rule : kGopher)
      if (rule.fails(text, s)) return rule.verdict;
  }
  if (!filter.languages.empty() && std::ranges::find(filter.languages, language_of(text)) == filter.languages.end())
    return Verdict::language;
  if (overlap.found_in(text)) return Verdict::contaminated;
  return Verdict::kept;
}

}  // namespace kintsugi::corpus

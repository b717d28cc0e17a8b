// Why a document is dropped, and the rules that look at one document alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "kintsugi/corpus/spec.h"

namespace kintsugi::corpus {

// In the order in which they are tested. `kept` is the absence of a reason.
enum class Verdict : uint8_t {
  kept,
  too_short,
  too_long,
  language,
  words,  // quality rules, Rae et al. 2021, section A.1.1
  word_length,
  symbols,
  bullets,
  ellipses,
  letters,
  stop_words,
  contaminated,
  exact_duplicate,
  near_duplicate,
};
constexpr size_t kVerdicts = 14;
// For tables: "near duplicate".
std::string_view name_of(Verdict verdict);

// Hashes of all runs of words of the evaluation sets.
class Overlap {
 public:
  Overlap() = default;
  // Reads the files. Throws UserError if one cannot be read.
  explicit Overlap(const Decontaminate& spec);

  bool found_in(std::string_view text) const;
  size_t size() const { return runs_.size(); }

 private:
  void add(std::string_view text);

  int64_t words_ = 0;
  std::unordered_set<uint64_t> runs_;
};

// The first rule that the text fails. Throws UserError if `languages` is not empty and this build has no CLD2.
Verdict judge(std::string_view text, const Filter& filter, const Overlap& overlap);

// The code of the language ("en"), or "un" if unknown. By CLD2; throws UserError in a build without it.
std::string language_of(std::string_view text);
// Whether language_of works, and whether a code is known to it.
bool knows_languages();
bool is_language(std::string_view code);

}  // namespace kintsugi::corpus

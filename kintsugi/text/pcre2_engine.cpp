#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/common_pattern.h"
#include "kintsugi/text/pattern_engine.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

using CompiledPattern = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;
using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

std::string pcre2_message(int error) {
  char message[256] = {};
  pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
  return message;
}

CompiledPattern compile_pcre2(std::string_view pattern, uint32_t options) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  CompiledPattern code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | options,
                                     &error, &offset, nullptr),
                       &pcre2_code_free);
  if (!code && error == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
  base::require(code != nullptr, "tokenizer", "PCRE2 refuses {} before {}: {}", pattern, pattern.substr(offset),
                pcre2_message(error));
  return code;
}

class Pcre2Finder final : public PatternFinder {
 public:
  Pcre2Finder(const pcre2_code* code, bool has_jit, std::string_view text, std::string_view where)
      : code_(code),
        has_jit_(has_jit),
        text_(text),
        where_(where),
        data_(pcre2_match_data_create(1, nullptr), &pcre2_match_data_free) {
    if (!data_) throw std::bad_alloc();
  }

  bool find(size_t from, Match& match) override {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
    int result = PCRE2_ERROR_JIT_STACKLIMIT;
    if (has_jit_) result = pcre2_jit_match(code_, subject, text_.size(), from, 0, data_.get(), nullptr);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = pcre2_match(code_, subject, text_.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data_.get(), nullptr);
    }
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (result < 0) {
      throw base::UserError("tokenizer", "{}: the pattern that splits text gives up {} bytes into a text: {}", where_,
                            from, pcre2_message(result));
    }
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(data_.get());
    match = {found[0], found[1]};
    return true;
  }

 private:
  const pcre2_code* code_;
  bool has_jit_;
  std::string_view text_, where_;
  MatchData data_;
};

class Pcre2Engine final : public PatternEngine {
 public:
  Pcre2Engine(std::string_view pattern, uint32_t options, std::string_view where)
      : code_(compile_pcre2(pattern, options)),
        has_jit_(pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0),
        where_(where) {}

  std::unique_ptr<PatternFinder> finder(std::string_view text) const override {
    return std::make_unique<Pcre2Finder>(code_.get(), has_jit_, text, where_);
  }

 private:
  CompiledPattern code_;
  bool has_jit_;
  std::string where_;
};

CodeSet look_up_members(std::string_view category, const CodeSet& of) {
  std::string text;
  for (const auto& [first, last] : of.ranges())
    for (char32_t c = first; c <= last; ++c)
      if (c < 0xD800 || c > 0xDFFF) append_character(c, text);
  const Pcre2Engine engine("\\p{" + std::string(category) + "}", PCRE2_UCP, "tables");
  const auto finder = engine.finder(text);
  std::vector<CodeSet::Range> found;
  PatternFinder::Match match;
  for (size_t from = 0; from < text.size() && finder->find(from, match); from = match.end) {
    const char32_t code = read_valid_character(std::string_view(text).substr(match.begin)).code;
    found.push_back({code, code});
  }
  return CodeSet(std::move(found));
}

// Always called with the same characters.
CodeSet members(std::string_view category, const CodeSet& of) {
  static std::mutex mutex;
  static std::map<std::string, CodeSet, std::less<>> known;
  const std::lock_guard lock(mutex);
  auto found = known.find(category);
  if (found == known.end()) found = known.emplace(category, look_up_members(category, of)).first;
  return found->second;
}

}  // namespace

std::unique_ptr<PatternEngine> compile_common(std::string_view pattern, std::string_view where) {
  const auto spelled = spell_pcre2(pattern, members);
  return spelled ? std::make_unique<Pcre2Engine>(*spelled, PCRE2_UCP, where) : nullptr;
}

std::unique_ptr<PatternEngine> compile_literal(std::string_view text, std::string_view where) {
  return std::make_unique<Pcre2Engine>(text, PCRE2_LITERAL, where);
}

}  // namespace kintsugi::text

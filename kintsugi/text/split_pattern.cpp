#include "kintsugi/text/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::text {

// The runs are possessive: this changes no match and avoids backtracking.
const std::string_view kGpt2Pattern = R"('(?:s|t|re|ve|m|ll|d)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s+(?!\S)|\s++)";

struct SplitPattern::Code {
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> compiled{nullptr, &pcre2_code_free};
  bool has_jit = false;
  std::string where;
};

namespace {

// PCRE2's own \s takes U+180E too, which has not been a space since Unicode 6.3 and is none to others. (\S within a
// class cannot be written out, and stays.)
std::string spell_spaces(std::string_view pattern) {
  constexpr std::string_view kSpaces = R"(\p{Z}\x{9}-\x{d}\x{85})";
  std::string spelled;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's' && in_class) {
        spelled += kSpaces;
      } else if ((next == 's' || next == 'S') && !in_class) {
        spelled += fmt::format("[{}{}]", next == 'S' ? "^" : "", kSpaces);
      } else {
        spelled += {c, next};
      }
      continue;
    }
    const bool first = i > 0 && (pattern[i - 1] == '[' || (i > 1 && pattern[i - 1] == '^' && pattern[i - 2] == '['));
    if (c == '[' && !in_class) {
      in_class = true;
    } else if (c == ']' && in_class && !first) {
      in_class = false;
    }
    spelled += c;
  }
  return spelled;
}

std::string message_of(int error) {
  char message[256] = {};
  pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
  return message;
}

}  // namespace

SplitPattern::SplitPattern(std::string_view pattern, bool literal, std::string_view where) {
  auto code = std::make_shared<Code>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  const uint32_t options = literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP;
  const std::string spelled = literal ? std::string(pattern) : spell_spaces(pattern);
  code->compiled.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(), options, &error, &offset, nullptr));
  if (!code->compiled && error == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
  if (!code->compiled) {
    throw base::UserError("tokenizer", "{}: the pattern {} is wrong before {}: {}", where, base::in_quotes(pattern),
                          base::in_quotes(std::string_view(spelled).substr(offset)), message_of(error));
  }
  code->has_jit = pcre2_jit_compile(code->compiled.get(), PCRE2_JIT_COMPLETE) == 0;
  code->where = where;
  code_ = std::move(code);
}

template <typename F>
void SplitPattern::each(std::string_view text, F&& piece) const {
  const pcre2_code* code = code_->compiled.get();
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(pcre2_match_data_create(1, nullptr),
                                                                                  &pcre2_match_data_free);
  if (!match) throw std::bad_alloc();
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer(match.get());
  size_t done = 0;
  size_t from = 0;
  while (from < text.size()) {
    int result = PCRE2_ERROR_JIT_STACKLIMIT;
    if (code_->has_jit) result = pcre2_jit_match(code, subject, text.size(), from, 0, match.get(), nullptr);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match.get(), nullptr);
    }
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (result < 0) {
      throw base::UserError("tokenizer", "{}: the pattern that splits text gives up {} bytes into a text: {}",
                            code_->where, from, message_of(result));
    }
    if (found[1] <= found[0]) {  // an empty match cuts nothing: continue after the next character
      ++from;
      while (from < text.size() && (static_cast<uint8_t>(text[from]) & 0xC0) == 0x80) ++from;
      continue;
    }
    if (found[0] > done) piece(text.substr(done, found[0] - done), false);
    piece(text.substr(found[0], found[1] - found[0]), true);
    done = from = found[1];
  }
  if (done < text.size()) piece(text.substr(done), false);
}

void SplitPattern::split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
  each(text, [&](std::string_view part, bool) { piece(part); });
}

void SplitPattern::match(std::string_view text,
                         const std::function<void(std::string_view, bool is_match)>& piece) const {
  each(text, piece);
}

}  // namespace kintsugi::text

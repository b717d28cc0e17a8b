#include "kintsugi/text/normalize.h"

#include <utf8proc.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "kintsugi/base/error.h"
#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

utf8proc_option_t options_of(NormalForm form) {
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const int options =
      UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compatible ? UTF8PROC_COMPAT : 0);
  return static_cast<utf8proc_option_t>(options);
}

uint8_t byte_at(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

// NFC never changes characters below U+0300, the first with the lead byte CC in UTF-8; the others never change ASCII.
// Such a character never composes with the previous one.
uint8_t least_lead_that_may_change(NormalForm form) {
  return form == NormalForm::kNfc ? 0xCC : 0x80;
}

size_t find_change(std::string_view text, size_t from, uint8_t least) {
  uint64_t word = 0;
  while (from < text.size()) {
    if (from + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + from, sizeof word);
      if ((word & 0x8080808080808080ULL) == 0) {
        from += sizeof word;
        continue;
      }
    }
    if (byte_at(text, from) >= least) break;
    ++from;
  }
  return from;
}

void append_valid(std::string_view valid, utf8proc_option_t options, std::string& out) {
  utf8proc_uint8_t* result = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                 static_cast<utf8proc_ssize_t>(valid.size()), &result, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  base::require(size >= 0, "normalize", "{} bytes: {}", valid.size(), utf8proc_errmsg(size));
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
}

// Excludes characters newer than the tokenizers' tables, regardless of utf8proc's version.
void append_known(std::string_view valid, utf8proc_option_t options, std::string& out) {
  size_t begin = 0;
  for (size_t at = 0; at < valid.size();) {
    const Character c = read_valid_character(valid.substr(at));
    if (is_newer_than_forms(c.code)) {
      if (at > begin) append_valid(valid.substr(begin, at - begin), options, out);
      out += valid.substr(at, c.size);
      begin = at + c.size;
    }
    at += c.size;
  }
  if (begin < valid.size()) append_valid(valid.substr(begin), options, out);
}

void append_normalized(std::string_view text, utf8proc_option_t options, std::string& out) {
  while (!text.empty()) {
    const size_t valid = count_valid(text);
    if (valid > 0) append_known(text.substr(0, valid), options, out);
    text.remove_prefix(valid);
    const size_t invalid = count_invalid(text);
    out += text.substr(0, invalid);
    text.remove_prefix(invalid);
  }
}

}  // namespace

std::optional<NormalForm> parse_normal_form(std::string_view name) {
  if (name == "NFC") return NormalForm::kNfc;
  if (name == "NFD") return NormalForm::kNfd;
  if (name == "NFKC") return NormalForm::kNfkc;
  if (name == "NFKD") return NormalForm::kNfkd;
  return std::nullopt;
}

bool is_surely_normal(std::string_view text, NormalForm form) {
  return find_change(text, 0, least_lead_that_may_change(form)) == text.size();
}

std::string normalize(std::string_view text, NormalForm form) {
  const auto options = options_of(form);
  const uint8_t least = least_lead_that_may_change(form);
  std::string out;
  out.reserve(text.size());
  for (size_t done = 0; done < text.size();) {
    const size_t change = find_change(text, done, least);
    if (change == text.size()) {
      out += text.substr(done);
      break;
    }
    // From the previous character, which may compose with the change, to the next that composes with nothing before it.
    size_t begin = change;
    while (begin > done && (begin == change || (byte_at(text, begin) & 0xC0) == 0x80)) --begin;
    size_t end = change;
    while (end < text.size() && (byte_at(text, end) >= least || (byte_at(text, end) & 0xC0) == 0x80)) ++end;
    out += text.substr(done, begin - done);
    append_normalized(text.substr(begin, end - begin), options, out);
    done = end;
  }
  return out;
}

}  // namespace kintsugi::text

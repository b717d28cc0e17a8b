#include "kintsugi/text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kintsugi/base/error.h"
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

void append_normalized(std::string_view valid, utf8proc_option_t options, std::string& out) {
  utf8proc_uint8_t* result = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                 static_cast<utf8proc_ssize_t>(valid.size()), &result, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  base::require(size >= 0, "normalize", "{} bytes: {}", valid.size(), utf8proc_errmsg(size));
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
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
  // NFC leaves every character below U+0300 alone, whose lead byte in UTF-8 is CC; the others leave ASCII alone.
  const uint8_t least = form == NormalForm::kNfc ? 0xCC : 0x80;
  return std::all_of(text.begin(), text.end(), [least](char c) { return static_cast<uint8_t>(c) < least; });
}

std::string normalize(std::string_view text, NormalForm form) {
  const auto options = options_of(form);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = count_valid(text);
    if (valid > 0) append_normalized(text.substr(0, valid), options, out);
    text.remove_prefix(valid);
    const size_t invalid = count_invalid(text);
    out += text.substr(0, invalid);
    text.remove_prefix(invalid);
  }
  return out;
}

}  // namespace kintsugi::text

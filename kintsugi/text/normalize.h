// Unicode normal forms (UAX 15), which a tokenizer may apply before it splits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::text {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// Parses "NFC" etc.; nothing for an unknown name.
std::optional<NormalForm> parse_normal_form(std::string_view name);

// Fast check: true if `text` is certainly in `form` already.
bool is_surely_normal(std::string_view text, NormalForm form);
// Leaves invalid UTF-8 unchanged.
std::string normalize(std::string_view text, NormalForm form);

}  // namespace kintsugi::text

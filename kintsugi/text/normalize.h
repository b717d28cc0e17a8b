// Unicode's normal forms (UAX 15), which a tokenizer may apply before it splits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::text {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// "NFC" and so on; nothing for another name.
std::optional<NormalForm> parse_normal_form(std::string_view name);

// True if `text` is certainly in `form` already, by a fast check of its bytes.
bool is_surely_normal(std::string_view text, NormalForm form);
// Bytes that are not valid UTF-8 stay as they are.
std::string normalize(std::string_view text, NormalForm form);

}  // namespace kintsugi::text

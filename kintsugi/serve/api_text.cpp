#include "kintsugi/serve/api_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kintsugi/base/format.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::serve {

std::string valid_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t valid = text::count_valid(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(1);
  }
  return out;
}

std::string token_bytes(const text::Tokenizer& tokenizer, std::optional<int32_t> before, int32_t id) {
  const int32_t size = tokenizer.vocab_size();
  if (id >= size) return fmt::format("<id {}>", id);
  if (!before || *before >= size) return tokenizer.decode(std::vector<int32_t>{id});
  const std::string first = tokenizer.decode(std::vector<int32_t>{*before}),
                    both = tokenizer.decode(std::vector<int32_t>{*before, id});
  return both.starts_with(first) ? both.substr(first.size()) : tokenizer.decode(std::vector<int32_t>{id});
}

std::string token_text(std::string_view bytes) {
  if (base::is_utf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

int64_t num_characters(std::string_view bytes) {
  return std::ranges::count_if(bytes, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace kintsugi::serve

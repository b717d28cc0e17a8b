// { "precompiled_charsmap": base64 }: SentencePiece's map, as applied by Hugging Face's library. A grapheme of less
// than 6 bytes that begins with a key is replaced as a whole; otherwise each of its characters is.
#include <utf8proc.h>

#include "kintsugi/text/base64.h"
#include "kintsugi/text/charsmap.h"
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

constexpr size_t kShortGrapheme = 6;

Charsmap read_map(const base::Json& part) {
  const auto text = find_part(part, "precompiled_charsmap");
  if (!text) return {};
  const auto bytes = read_base64(text->text());
  if (!bytes) text->fail("\"precompiled_charsmap\" is not base64");
  return Charsmap(*bytes, "tokenizer.json");
}

// The size of the first grapheme (UAX 29) of `text`.
size_t grapheme_size(std::string_view text) {
  size_t size = 0;
  utf8proc_int32_t state = 0;
  Character before;
  while (size < text.size()) {
    const Character c = read_character(text.substr(size));
    if (size > 0 && utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.code),
                                                     static_cast<utf8proc_int32_t>(c.code), &state))
      break;
    before = c;
    size += c.size;
  }
  return size;
}

bool is_plain(std::string_view text, size_t at) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~'; };
  return plain(text[at]) && (at + 1 == text.size() || plain(text[at + 1]));
}

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const base::Json& part) : map_(read_map(part)) {
    for (char c = ' '; c <= '~'; ++c) keeps_ascii_ = keeps_ascii_ && !map_.shortest({&c, 1});
  }

  void apply(std::string& text, Place) const override {
    std::string changed;
    changed.reserve(text.size());
    const std::string_view all = text;
    for (size_t at = 0; at < all.size();) {
      if (keeps_ascii_ && is_plain(all, at)) {
        changed += all[at++];
        continue;
      }
      const std::string_view grapheme = all.substr(at, grapheme_size(all.substr(at)));
      at += grapheme.size();
      if (grapheme.size() < kShortGrapheme) {
        if (const auto found = map_.shortest(grapheme)) {
          changed += found->second;
          continue;
        }
      }
      each_character(grapheme, [&](char32_t, std::string_view bytes) {
        const auto found = map_.shortest(bytes);
        changed += found ? found->second : bytes;
      });
    }
    text = std::move(changed);
  }

 private:
  Charsmap map_;
  bool keeps_ascii_ = true;  // no printable ASCII character is replaced on its own
};

}  // namespace

std::unique_ptr<Normalizer> read_precompiled(const base::Json& part) {
  return std::make_unique<Precompiled>(part);
}

}  // namespace kintsugi::text

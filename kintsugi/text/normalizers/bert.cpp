// BertNormalizer: { "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true }, in
// this order. Strips accents if it lowercases, unless the file says otherwise.
#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/normalize.h"
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const base::Json& part)
      : cleans_(flag(part, "clean_text", true)),
        separates_(flag(part, "handle_chinese_chars", true)),
        lowers_(flag(part, "lowercase", true)),
        strips_(flag(part, "strip_accents", lowers_)) {}

  void apply(std::string& text, Place) const override {
    std::string changed;
    changed.reserve(text.size() + text.size() / 8);
    each_character(text, [&](char32_t code, std::string_view bytes) {
      if (cleans_ && (code == 0 || code == 0xFFFD || is_control(code))) return;
      if (cleans_ && is_space(code)) bytes = " ";
      const bool separated = separates_ && code >= 0x3400 && is_chinese(code);
      if (separated) changed += ' ';
      changed += bytes;
      if (separated) changed += ' ';
    });
    if (strips_ && !is_surely_normal(changed, NormalForm::kNfd)) {
      changed = normalize(changed, NormalForm::kNfd);
      remove_characters(changed, is_nonspacing_mark);
    }
    text.clear();
    if (!lowers_) {
      text = std::move(changed);
    } else {
      each_character(changed, [&](char32_t code, std::string_view) { append_lowercase(code, text); });
    }
  }

 private:
  bool cleans_, separates_, lowers_, strips_;
};

}  // namespace

std::unique_ptr<Normalizer> read_bert_normalizer(const base::Json& part) {
  return std::make_unique<BertNormalizer>(part);
}

}  // namespace kintsugi::text

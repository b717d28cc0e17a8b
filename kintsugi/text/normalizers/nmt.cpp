// SentencePiece's "nmt" treatment of control characters and unusual spaces.
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

bool is_removed(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}

bool becomes_space(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

class Nmt final : public Normalizer {
 public:
  void apply(std::string& text, Place) const override {
    std::string changed;
    changed.reserve(text.size());
    each_character(text, [&](char32_t code, std::string_view bytes) {
      if (is_removed(code)) return;
      changed += becomes_space(code) ? std::string_view(" ") : bytes;
    });
    text = std::move(changed);
  }
};

}  // namespace

std::unique_ptr<Normalizer> read_nmt(const base::Json&) {
  return std::make_unique<Nmt>();
}

}  // namespace kintsugi::text

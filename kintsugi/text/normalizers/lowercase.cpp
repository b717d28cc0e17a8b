#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

class Lowercase final : public Normalizer {
 public:
  void apply(std::string& text, Place) const override {
    std::string lower;
    lower.reserve(text.size());
    each_character(text, [&](char32_t code, std::string_view) { append_lowercase(code, lower); });
    text = std::move(lower);
  }
};

}  // namespace

std::unique_ptr<Normalizer> read_lowercase(const base::Json&) {
  return std::make_unique<Lowercase>();
}

}  // namespace kintsugi::text

// Spells text in the characters that represent bytes.
#include "kintsugi/text/byte_symbols.h"
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

class ByteLevelNormalizer final : public Normalizer {
 public:
  void apply(std::string& text, Place) const override { text = spell_bytes(text); }
  bool spells_bytes() const override { return true; }
};

}  // namespace

std::unique_ptr<Normalizer> read_byte_level_normalizer(const base::Json&) {
  return std::make_unique<ByteLevelNormalizer>();
}

}  // namespace kintsugi::text

// Removes all combining characters; preceded by a decomposing form such as NFD.
#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

class StripAccents final : public Normalizer {
 public:
  void apply(std::string& text, Place) const override { remove_characters(text, is_mark); }
};

}  // namespace

std::unique_ptr<Normalizer> read_strip_accents(const base::Json&) {
  return std::make_unique<StripAccents>();
}

}  // namespace kintsugi::text

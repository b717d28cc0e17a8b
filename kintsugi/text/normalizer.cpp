#include "kintsugi/text/normalizer.h"

#include "kintsugi/text/json_part.h"
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

constexpr PartRow<std::unique_ptr<Normalizer>> kRows[] = {
    {"Sequence", read_normalizer_sequence},
    {"NFC", read_unicode_form},
    {"NFD", read_unicode_form},
    {"NFKC", read_unicode_form},
    {"NFKD", read_unicode_form},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"Lowercase", read_lowercase},
    {"Strip", read_strip},
    {"StripAccents", read_strip_accents},
    {"Nmt", read_nmt},
    {"BertNormalizer", read_bert_normalizer},
    {"Precompiled", read_precompiled},
    {"ByteLevel", read_byte_level_normalizer},
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const base::Json& part) {
  return read_by_type<std::unique_ptr<Normalizer>>(part, kRows, "normalizer");
}

}  // namespace kintsugi::text

#include "kintsugi/text/token_model.h"

#include "kintsugi/base/format.h"
#include "kintsugi/text/models/rows.h"

namespace kintsugi::text {
namespace {

struct ModelRow {
  std::string_view type;
  std::unique_ptr<TokenModel> (*read)(const base::Json& model);
};

constexpr ModelRow kRows[] = {
    {"BPE", read_character_bpe},
    {"Unigram", read_unigram},
    {"WordPiece", read_word_piece},
    {"WordLevel", read_word_level},
};

// Old files have no "type".
std::string_view type_of(const base::Json& model) {
  if (model.has("type")) return model.at("type").text();
  if (model.has("merges")) return "BPE";
  if (model.at("vocab").is_list()) return "Unigram";
  return model.has("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

}  // namespace

std::unique_ptr<TokenModel> read_token_model(const base::Json& model) {
  const std::string_view type = type_of(model);
  std::string known;
  for (const ModelRow& row : kRows) {
    if (row.type == type) return row.read(model);
    known += (known.empty() ? "" : ", ") + std::string(row.type);
  }
  model.fail("model {} is not supported; supported are {}", base::in_quotes(type), known);
}

}  // namespace kintsugi::text

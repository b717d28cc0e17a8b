#include "kintsugi/text/post_processor.h"

#include "kintsugi/text/json_part.h"

namespace kintsugi::text {
namespace {

using base::Json;

int32_t id_of(const Json& value) {
  return static_cast<int32_t>(value.whole(0, INT32_MAX));
}

// { "single": [{ "SpecialToken": { "id": name } }, { "Sequence": ... }], "special_tokens": { name: { "ids": [...] } } }
SpecialTokens read_template(const Json& part) {
  SpecialTokens special;
  const Json known = part.at("special_tokens");
  bool after = false;
  for (const Json& piece : part.at("single").list()) {
    if (piece.has("Sequence")) {
      after = true;
      continue;
    }
    for (const Json& id : known.at(piece.at("SpecialToken").at("id").text()).at("ids").list())
      (after ? special.after : special.before).push_back(id_of(id));
  }
  return special;
}

// { "cls": [token, id], "sep": [token, id] }
SpecialTokens read_pair(const Json& part) {
  const auto second = [&](const char* key) {
    const Json pair = part.at(key);
    if (pair.list().size() != 2) pair.refuse("[token, id]");
    return id_of(pair.list()[1]);
  };
  return {{second("cls")}, {second("sep")}};
}

SpecialTokens read_sequence(const Json& part);
SpecialTokens read_nothing(const Json&) {
  return {};
}

constexpr PartRow<SpecialTokens> kRows[] = {
    {"Sequence", read_sequence},      {"TemplateProcessing", read_template}, {"BertProcessing", read_pair},
    {"RobertaProcessing", read_pair}, {"ByteLevel", read_nothing},
};

SpecialTokens read_sequence(const Json& part) {
  SpecialTokens all;
  for (const Json& step : part.at("processors").list()) {
    const auto special = read_by_type<SpecialTokens>(step, kRows, "post-processor");
    all.before.insert(all.before.begin(), special.before.begin(), special.before.end());
    all.after.insert(all.after.end(), special.after.begin(), special.after.end());
  }
  return all;
}

}  // namespace

SpecialTokens read_post_processor(const Json& document) {
  const auto part = find_part(document, "post_processor");
  return part ? read_by_type<SpecialTokens>(*part, kRows, "post-processor") : SpecialTokens();
}

}  // namespace kintsugi::text

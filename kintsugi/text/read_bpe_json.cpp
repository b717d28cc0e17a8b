// Of the document { added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model: { vocab, merges } } the
// rest is ignored. merges: ["left right", ...] or, since tokenizers 0.20, [["left", "right"], ...].
#include "kintsugi/text/read_bpe_json.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/bpe_vocabulary.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/post_processor.h"

namespace kintsugi::text {
namespace {

using base::Json;

void read_normalizer(const Json& part, BpeDefinition& definition) {
  if (part.at("type").text() != "Sequence") {
    definition.normal_forms.push_back(parse_normal_form(part.at("type").text()).value());
    return;
  }
  for (const Json& step : part.at("normalizers").list()) read_normalizer(step, definition);
}

void read_pre_tokenizer(const Json& part, BpeDefinition& definition) {
  const std::string_view type = part.at("type").text();
  if (type == "Sequence") {
    for (const Json& step : part.at("pretokenizers").list()) read_pre_tokenizer(step, definition);
  } else if (type == "ByteLevel") {
    definition.add_prefix_space = flag(part, "add_prefix_space", true);
    if (flag(part, "use_regex", true)) definition.patterns.emplace_back(kGpt2Pattern, false, definition.where);
  } else if (type == "Split") {
    const Json pattern = part.at("pattern");
    const bool literal = pattern.has("String");
    definition.patterns.emplace_back(pattern.at(literal ? "String" : "Regex").text(), literal, definition.where);
  } else {
    const bool each = flag(part, "individual_digits", false);
    definition.patterns.emplace_back(each ? R"(\p{N})" : R"(\p{N}++)", false, definition.where);
  }
}

bool has_only_forms(const Json& normalizer) {
  if (normalizer.at("type").text() != "Sequence") return parse_normal_form(normalizer.at("type").text()).has_value();
  for (const Json& step : normalizer.at("normalizers").list())
    if (!has_only_forms(step)) return false;
  return true;
}

// A pre-tokenizer before ByteLevel that only splits.
bool only_cuts(const Json& part) {
  const std::string_view type = part.at("type").text();
  if (type != "Split") return type == "Digits";
  return part.at("behavior").text() == "Isolated" && !flag(part, "invert", false);
}

bool has_byte_level_words(const Json& part) {
  if (part.at("type").text() == "ByteLevel") return true;
  if (part.at("type").text() != "Sequence") return false;
  const Json::Items steps = part.at("pretokenizers").list();
  size_t at = 0;
  for (const Json& step : steps) {
    const bool last = ++at == steps.size();
    if (last) return step.at("type").text() == "ByteLevel" && (at == 1 || !flag(step, "add_prefix_space", true));
    if (!only_cuts(step)) return false;
  }
  return false;
}

void check_model(const Json& model) {
  if (const auto dropout = find_part(model, "dropout"); dropout && dropout->number() != 0)
    dropout->refuse("null, since dropout makes ids random");
}

}  // namespace

bool is_byte_level_bpe(const Json& document) {
  const Json model = document.at("model");
  const auto type = model.find("type");
  if (type ? type->text() != "BPE" : !model.has("merges")) return false;
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto mark = find_part(model, key); mark && mark->text() != "") return false;
  if (flag(model, "byte_fallback", false)) return false;
  const auto normalizer = find_part(document, "normalizer"), words = find_part(document, "pre_tokenizer");
  const auto decoder = find_part(document, "decoder");
  return words && has_byte_level_words(*words) && (!normalizer || has_only_forms(*normalizer)) &&
         (!decoder || decoder->at("type").text() == "ByteLevel");
}

std::unique_ptr<Tokenizer> read_bpe_json(const Json& document, std::string_view content, std::string_view where) {
  const Json model = document.at("model");
  check_model(model);
  BpeDefinition definition;
  definition.json = content;
  definition.where = where;
  definition.added = read_added_tokens(document);
  definition.special = read_post_processor(document);
  if (const auto normalizer = find_part(document, "normalizer")) read_normalizer(*normalizer, definition);
  read_pre_tokenizer(document.at("pre_tokenizer"), definition);
  definition.model.prefer_whole_words = flag(model, "ignore_merges", false);
  const Json vocabulary = model.at("vocab");
  vocabulary.members();
  set_vocabulary(definition, vocabulary, read_merges(model.at("merges"), where), AddedIds::numbered);
  return make_bpe_tokenizer(std::move(definition));
}

}  // namespace kintsugi::text

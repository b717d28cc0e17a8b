// Of the document { added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model: { vocab, merges } } the
// rest is ignored. merges: ["left right", ...] or, since tokenizers 0.20, [["left", "right"], ...].
#include "kintsugi/text/read_bpe_json.h"

#include "kintsugi/base/error.h"
#include "kintsugi/text/bpe_vocabulary.h"
#include "kintsugi/text/json_check.h"

namespace kintsugi::text {
namespace {

using nlohmann::json;
using Type = json::value_t;

const json& get_optional(const json& object, const char* key) {
  static const json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string type_of(const json& part, std::string_view name, std::string_view where) {
  if (!part.is_object()) throw base::UserError("tokenizer", "{}: {} should be an object", where, name);
  return get_member(part, "type", Type::string, name, where).get<std::string>();
}

void read_added(const json& document, BpeDefinition& definition) {
  if (!document.contains("added_tokens")) return;
  for (const json& entry : get_member(document, "added_tokens", Type::array, "the file", definition.where)) {
    const std::string_view where = definition.where;
    if (!entry.is_object()) throw base::UserError("tokenizer", "{}: an added token should be an object", where);
    AddedToken token;
    token.content = get_member(entry, "content", Type::string, "an added token", where).get<std::string>();
    if (token.content.empty()) throw base::UserError("tokenizer", "{}: the content of an added token is empty", where);
    const std::string name = "the added token " + quote(token.content);
    if (!entry.contains("id")) throw base::UserError("tokenizer", "{}: {} lacks \"id\"", where, name);
    token.id = read_id(entry["id"], name, where);
    token.single_word = get_flag(entry, "single_word", false, name, where);
    token.lstrip = get_flag(entry, "lstrip", false, name, where);
    token.rstrip = get_flag(entry, "rstrip", false, name, where);
    token.special = get_flag(entry, "special", false, name, where);
    token.normalized = get_flag(entry, "normalized", !token.special, name, where);
    definition.added.push_back(std::move(token));
  }
}

void read_normalizer(const json& part, BpeDefinition& definition) {
  if (part.is_null()) return;
  const std::string type = type_of(part, "the normalizer", definition.where);
  if (type == "Sequence") {
    for (const json& step : get_member(part, "normalizers", Type::array, "the normalizer", definition.where)) {
      read_normalizer(step, definition);
    }
    return;
  }
  const auto form = parse_normal_form(type);
  if (!form) {
    throw base::UserError("tokenizer", "{}: the normalizer {} is not known; known are NFC, NFD, NFKC, NFKD, Sequence",
                          definition.where, quote(type));
  }
  definition.normal_forms.push_back(*form);
}

void read_split(const json& part, BpeDefinition& definition) {
  const std::string_view where = definition.where;
  const json& pattern = get_member(part, "pattern", Type::object, "the pre-tokenizer Split", where);
  const auto behavior = get_member(part, "behavior", Type::string, "the pre-tokenizer Split", where).get<std::string>();
  if (behavior != "Isolated") {
    throw base::UserError("tokenizer", "{}: the behavior {} of the pre-tokenizer Split is not known; known is Isolated",
                          where, quote(behavior));
  }
  const bool literal = pattern.contains("String");
  const auto text = get_member(pattern, literal ? "String" : "Regex", Type::string, "the pattern of Split", where);
  definition.patterns.emplace_back(text.get<std::string>(), literal, where);
}

// True once ByteLevel has been read, after which nothing may come.
bool read_pre_tokenizer(const json& part, BpeDefinition& definition) {
  const std::string_view where = definition.where;
  const std::string type = type_of(part, "the pre-tokenizer", where);
  if (type == "Sequence") {
    bool ended = false;
    for (const json& step : get_member(part, "pretokenizers", Type::array, "the pre-tokenizer", where)) {
      if (ended) throw base::UserError("tokenizer", "{}: the pre-tokenizer ByteLevel must be the last", where);
      ended = read_pre_tokenizer(step, definition);
    }
    return ended;
  }
  if (type == "ByteLevel") {
    definition.add_prefix_space = get_flag(part, "add_prefix_space", true, "the pre-tokenizer", where);
    if (definition.add_prefix_space && !definition.patterns.empty()) {
      throw base::UserError("tokenizer", "{}: add_prefix_space behind another pre-tokenizer is not supported", where);
    }
    if (get_flag(part, "use_regex", true, "the pre-tokenizer", where)) {
      definition.patterns.emplace_back(kGpt2Pattern, false, where);
    }
    return true;
  }
  if (type == "Split") {
    if (get_flag(part, "invert", false, "the pre-tokenizer Split", where)) {
      throw base::UserError("tokenizer", "{}: an inverted pre-tokenizer Split is not supported", where);
    }
    read_split(part, definition);
  } else if (type == "Digits") {
    const bool each = get_flag(part, "individual_digits", false, "the pre-tokenizer Digits", where);
    definition.patterns.emplace_back(each ? R"(\p{N})" : R"(\p{N}++)", false, where);
  } else {
    throw base::UserError("tokenizer",
                          "{}: the pre-tokenizer {} is not known; known are ByteLevel, Split, Digits, Sequence", where,
                          quote(type));
  }
  return false;
}

std::vector<SpelledMerge> read_merges(const json& list, std::string_view where) {
  std::vector<SpelledMerge> merges;
  merges.reserve(list.size());
  for (const json& merge : list) {
    const size_t number = merges.size() + 1;
    if (merge.is_string()) {
      merges.push_back(read_merge(merge.get_ref<const std::string&>(), number, where));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      throw base::UserError("tokenizer", "{}: merge {} should be \"left right\" or [\"left\", \"right\"]", where,
                            number);
    }
  }
  return merges;
}

void check_model(const json& model, std::string_view where) {
  const std::string type = type_of(model, "the model", where);
  if (type != "BPE") {
    throw base::UserError("tokenizer", "{}: the model is {}; only byte-level BPE is read", where, quote(type));
  }
  const json& dropout = get_optional(model, "dropout");
  if (!dropout.is_null() && dropout != 0) {
    throw base::UserError("tokenizer", "{}: the model has dropout, which makes ids random; set it to null", where);
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& mark = get_optional(model, key);
    if (mark.is_null() || mark == "") continue;
    throw base::UserError("tokenizer", "{}: the model has a {}, which byte-level BPE has not", where, key);
  }
}

}  // namespace

std::unique_ptr<Tokenizer> read_bpe_json(const json& document, std::string_view content, std::string_view where) {
  const json& model = get_member(document, "model", Type::object, "the file", where);
  check_model(model, where);
  BpeDefinition definition;
  definition.json = content;
  definition.where = where;
  read_added(document, definition);
  read_normalizer(get_optional(document, "normalizer"), definition);
  const json& splitter = get_optional(document, "pre_tokenizer");
  if (splitter.is_null() || !read_pre_tokenizer(splitter, definition)) {
    throw base::UserError("tokenizer", "{}: there is no ByteLevel pre-tokenizer; only byte-level BPE is read", where);
  }
  const json& decoder = get_optional(document, "decoder");
  if (!decoder.is_null() && type_of(decoder, "the decoder", where) != "ByteLevel") {
    throw base::UserError("tokenizer", "{}: the decoder should be ByteLevel, as the pre-tokenizer is", where);
  }
  definition.model.prefer_whole_words = get_flag(model, "ignore_merges", false, "the model", where);
  const json& vocabulary = get_member(model, "vocab", Type::object, "the model", where);
  const json& merges = get_member(model, "merges", Type::array, "the model", where);
  set_vocabulary(definition, vocabulary, read_merges(merges, where));
  return make_bpe_tokenizer(std::move(definition));
}

}  // namespace kintsugi::text

// Of the document { added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model: { vocab, merges } } the
// rest is ignored. merges: ["left right", ...] or, since tokenizers 0.20, [["left", "right"], ...].
#include "kintsugi/text/read_bpe_json.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/bpe_vocabulary.h"

namespace kintsugi::text {
namespace {

using base::Json;

// A member that may be absent or null.
std::optional<Json> find_part(const Json& object, std::string_view key) {
  auto part = object.find(key);
  if (part && part->is_null()) part.reset();
  return part;
}

bool flag(const Json& object, std::string_view key, bool otherwise) {
  const auto found = object.find(key);
  return found ? found->boolean() : otherwise;
}

void read_added(const Json& document, BpeDefinition& definition) {
  const auto list = document.find("added_tokens");
  if (!list) return;
  for (const Json& entry : list->list()) {
    AddedToken token;
    token.content = entry.at("content").text();
    if (token.content.empty()) entry.at("content").fail("the content of an added token is empty");
    token.id = read_id(entry.at("id"));
    token.single_word = flag(entry, "single_word", false);
    token.lstrip = flag(entry, "lstrip", false);
    token.rstrip = flag(entry, "rstrip", false);
    token.special = flag(entry, "special", false);
    token.normalized = flag(entry, "normalized", !token.special);
    definition.added.push_back(std::move(token));
  }
}

void read_normalizer(const Json& part, BpeDefinition& definition) {
  if (part.is_null()) return;
  const Json type = part.at("type");
  if (type.text() == "Sequence") {
    for (const Json& step : part.at("normalizers").list()) read_normalizer(step, definition);
    return;
  }
  const auto form = parse_normal_form(type.text());
  if (!form) type.refuse("NFC, NFD, NFKC, NFKD or Sequence; no other normalizer is known");
  definition.normal_forms.push_back(*form);
}

void read_split(const Json& part, BpeDefinition& definition) {
  const Json pattern = part.at("pattern"), behavior = part.at("behavior");
  if (behavior.text() != "Isolated") behavior.refuse("Isolated; no other behavior of Split is known");
  const bool literal = pattern.has("String");
  definition.patterns.emplace_back(pattern.at(literal ? "String" : "Regex").text(), literal, definition.where);
}

// True once ByteLevel has been read, after which nothing may come.
bool read_pre_tokenizer(const Json& part, BpeDefinition& definition) {
  const Json type = part.at("type");
  if (type.text() == "Sequence") {
    bool ended = false;
    for (const Json& step : part.at("pretokenizers").list()) {
      if (ended) step.fail("the pre-tokenizer ByteLevel must be the last");
      ended = read_pre_tokenizer(step, definition);
    }
    return ended;
  }
  if (type.text() == "ByteLevel") {
    definition.add_prefix_space = flag(part, "add_prefix_space", true);
    if (definition.add_prefix_space && !definition.patterns.empty())
      part.fail("add_prefix_space behind another pre-tokenizer is not supported");
    if (flag(part, "use_regex", true)) definition.patterns.emplace_back(kGpt2Pattern, false, definition.where);
    return true;
  }
  if (type.text() == "Split") {
    if (flag(part, "invert", false)) part.fail("an inverted pre-tokenizer Split is not supported");
    read_split(part, definition);
  } else if (type.text() == "Digits") {
    const bool each = flag(part, "individual_digits", false);
    definition.patterns.emplace_back(each ? R"(\p{N})" : R"(\p{N}++)", false, definition.where);
  } else {
    type.refuse("ByteLevel, Split, Digits or Sequence; no other pre-tokenizer is known");
  }
  return false;
}

std::vector<SpelledMerge> read_merges(const Json& list, std::string_view where) {
  const Json::Items items = list.list();
  std::vector<SpelledMerge> merges;
  merges.reserve(items.size());
  for (const Json& merge : items) {
    if (merge.is_text()) {
      merges.push_back(read_merge(merge.text(), merges.size() + 1, where));
    } else if (merge.is_list() && merge.list().size() == 2) {
      merges.emplace_back(merge.list()[0].text(), merge.list()[1].text());
    } else {
      merge.refuse("\"left right\" or [\"left\", \"right\"]");
    }
  }
  return merges;
}

void check_model(const Json& model) {
  const Json type = model.at("type");
  if (type.text() != "BPE") type.refuse("BPE; only byte-level BPE is read");
  if (const auto dropout = find_part(model, "dropout"); dropout && dropout->number() != 0)
    dropout->refuse("null, since dropout makes ids random");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto mark = find_part(model, key); mark && mark->text() != "")
      mark->refuse("null, since byte-level BPE has none");
}

}  // namespace

std::unique_ptr<Tokenizer> read_bpe_json(const Json& document, std::string_view content, std::string_view where) {
  const Json model = document.at("model");
  check_model(model);
  BpeDefinition definition;
  definition.json = content;
  definition.where = where;
  read_added(document, definition);
  if (const auto normalizer = find_part(document, "normalizer")) read_normalizer(*normalizer, definition);
  const auto splitter = find_part(document, "pre_tokenizer");
  if (!splitter || !read_pre_tokenizer(*splitter, definition)) {
    throw base::UserError("tokenizer", "{}: there is no ByteLevel pre-tokenizer; only byte-level BPE is read", where);
  }
  if (const auto decoder = find_part(document, "decoder"); decoder && decoder->at("type").text() != "ByteLevel")
    decoder->at("type").refuse("ByteLevel, as the pre-tokenizer is");
  definition.model.prefer_whole_words = flag(model, "ignore_merges", false);
  const Json vocabulary = model.at("vocab");
  vocabulary.members();
  set_vocabulary(definition, vocabulary, read_merges(model.at("merges"), where));
  return make_bpe_tokenizer(std::move(definition));
}

}  // namespace kintsugi::text

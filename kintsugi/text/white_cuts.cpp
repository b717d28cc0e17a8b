#include "kintsugi/text/white_cuts.h"

#include <algorithm>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/json.h"
#include "kintsugi/text/added_tokens.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/pattern_span.h"
#include "kintsugi/text/replace_pattern.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

using base::Json;

constexpr std::string_view kSpaceSign = "▁";

// The effect of a pipeline step on a text cut between a letter and white space.
enum class Effect {
  spans,   // its result may differ
  passes,  // same result; the two may be in one word
  ends,    // same result, and a word ends there
};

// Letters and line breaks; and word characters and a space, which patterns never treat as the end of a line.
const std::array<CharacterPair, 2>& pairs() {
  static const std::array<CharacterPair, 2> list = [] {
    std::array<CharacterPair, 2> made;
    for (char32_t code = 1; code < 0x30000; ++code) {
      if (code >= 0xD800 && code < 0xE000) continue;
      if (is_cut_letter(code)) append_character(code, made[0].left);
      if (is_cut_letter(code) || is_word(code)) append_character(code, made[1].left);
    }
    made[0].right = "\n\t\r";
    made[1].right = " ▁";  // often represents a space
    return made;
  }();
  return list;
}

bool is_left(std::string_view text, char white) {
  const Character last = read_last_character(text);
  return last.size > 0 && (is_cut_letter(last.code) || (white == ' ' && is_word(last.code)));
}

// Whether a literal text contains such a pair.
bool holds_pair(std::string_view text) {
  for (size_t at = 1; at < text.size(); ++at)
    if (WhiteCuts::kWhite.find(text[at]) != std::string_view::npos && is_left(text.substr(0, at), text[at]))
      return true;
  return false;
}

// { "String": ... } or { "Regex": ... }
bool never_spans(const Json& pattern) {
  if (const auto literal = pattern.find("String")) return !holds_pair(literal->text());
  const std::string_view regex = pattern.at("Regex").text();
  return std::ranges::all_of(pairs(), [&](const CharacterPair& pair) { return text::never_spans(regex, pair); });
}

bool is_white_text(std::string_view text) {
  while (!text.empty()) {
    if (text.starts_with(kSpaceSign))
      text.remove_prefix(kSpaceSign.size());
    else if (WhiteCuts::kWhite.find(text.front()) != std::string_view::npos)
      text.remove_prefix(1);
    else
      return false;
  }
  return true;
}

// White space remains white space, and letters letters.
bool keeps_kinds(const Json& replace) {
  const std::string_view content = replace.at("content").text();
  const Json pattern = replace.at("pattern");
  if (const auto literal = pattern.find("String")) {
    const std::string_view text = literal->text();
    const bool has_white = text.find_first_of(WhiteCuts::kWhite) != std::string_view::npos;
    return (!has_white || is_white_text(content)) && (!is_left(text, ' ') || is_left(content, '\n'));
  }
  bool letters = false;
  read_pattern(pattern).match(pairs()[0].left, [&](std::string_view, bool is_match) { letters = letters || is_match; });
  return is_white_text(content) && !letters;
}

Effect effect_of_normalizer(const Json& part) {
  const std::string_view type = part.at("type").text();
  if (type == "Sequence") {
    for (const Json& step : part.at("normalizers").list())
      if (effect_of_normalizer(step) == Effect::spans) return Effect::spans;
  }
  if (type == "Replace" && (!never_spans(part.at("pattern")) || !keeps_kinds(part))) return Effect::spans;
  return Effect::passes;
}

bool spells_bytes(const Json& normalizer) {
  if (normalizer.at("type").text() == "ByteLevel") return true;
  if (normalizer.at("type").text() == "Sequence")
    for (const Json& step : normalizer.at("normalizers").list())
      if (spells_bytes(step)) return true;
  return false;
}

// Whether the step adds a prefix to words that are not at the beginning of the text.
bool prefixes_words(const Json& part) {
  const std::string_view type = part.at("type").text();
  if (type == "ByteLevel") return flag(part, "add_prefix_space", true);
  if (type != "Metaspace") return false;
  const auto scheme = find_part(part, "prepend_scheme");
  return scheme ? scheme->text() == "always" : flag(part, "add_prefix_space", true);
}

bool joins_pieces(const Json& part) {
  const auto behavior = find_part(part, "behavior");
  return behavior && behavior->text() != "Isolated" && behavior->text() != "Removed";
}

// One step. `last`: the model takes its words.
Effect effect_of_step(const Json& part, bool last) {
  const std::string_view type = part.at("type").text();
  for (const std::string_view ends : {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"})
    if (type == ends) return Effect::ends;
  if (type == "ByteLevel") return flag(part, "use_regex", true) ? Effect::ends : Effect::passes;
  if (type == "Metaspace" || type == "CharDelimiterSplit") return Effect::passes;
  if (type == "Digits") return Effect::passes;
  // Joined pieces differ from those of the whole for a subsequent step.
  if (type == "Punctuation") return joins_pieces(part) && !last ? Effect::spans : Effect::passes;
  if (type == "Split")
    return never_spans(part.at("pattern")) && (!joins_pieces(part) || last) ? Effect::passes : Effect::spans;
  return Effect::spans;
}

Effect effect_of_words(const Json& part) {
  if (part.at("type").text() != "Sequence") return effect_of_step(part, true);
  Effect all = Effect::passes;
  bool cut = false;  // into pieces that keep their white space
  size_t left = part.at("pretokenizers").list().size();
  for (const Json& step : part.at("pretokenizers").list()) {
    if (cut && prefixes_words(step)) return Effect::spans;
    const Effect effect = effect_of_step(step, --left == 0);
    if (effect == Effect::spans) return Effect::spans;
    if (effect == Effect::ends) all = Effect::ends;
    const std::string_view type = step.at("type").text();
    cut = cut || type == "ByteLevel" || type == "Split" || type == "Metaspace" || type == "Punctuation" ||
          type == "Digits";
  }
  return all;
}

bool is_set(const Json& model, std::string_view key) {
  const auto part = find_part(model, key);
  return part && part->is_text() && !part->text().empty();
}

// Whether a word may be cut where no token spans the cut.
bool encodes_by_parts(const Json& model) {
  const auto type = find_part(model, "type");
  const bool merges = type ? type->text() == "BPE" : model.has("merges");
  const bool pieces = type ? type->text() == "Unigram" : model.at("vocab").is_list();
  if (merges) return !is_set(model, "continuing_subword_prefix") && !is_set(model, "end_of_word_suffix");
  return pieces;
}

Effect effect_of(const Json& document) {
  const auto normalizer = find_part(document, "normalizer"), words = find_part(document, "pre_tokenizer");
  if (normalizer && effect_of_normalizer(*normalizer) == Effect::spans) return Effect::spans;
  if (normalizer && words && spells_bytes(*normalizer)) return Effect::spans;  // patterns no longer see white space
  const Effect effect = words ? effect_of_words(*words) : Effect::passes;
  return effect == Effect::passes && !encodes_by_parts(document.at("model")) ? Effect::spans : effect;
}

}  // namespace

namespace {

// Whether a continuation is encoded as within the whole text. A mark after each text, for example, prevents that; if a
// tokenizer lacks even these letters, nothing is known.
bool continues(const Tokenizer& tokenizer) {
  try {
    std::vector<int32_t> parts = tokenizer.encode("ab");
    tokenizer.encode_continued(" ab", parts);
    return parts == tokenizer.encode("ab ab");
  } catch (const base::UserError&) {
    return false;
  }
}

bool has_token(const Tokenizer& tokenizer, char white) {
  try {
    std::vector<int32_t> ids;
    tokenizer.encode_continued(std::string_view(&white, 1), ids);
    return is_white_text(tokenizer.decode(ids));
  } catch (const base::UserError&) {
    return false;
  }
}

}  // namespace

// Letters of scripts with few or no spaces, or common enough to matter; a missing letter only means that the cut falls
// elsewhere.
bool is_cut_letter(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return (c >= 0xC0 && c <= 0x24F && c != 0xD7 && c != 0xF7) ||           // Latin
         (c >= 0x3B1 && c <= 0x3C9) || (c >= 0x410 && c <= 0x44F) ||      // Greek, Cyrillic
         (c >= 0x5D0 && c <= 0x5EA) || (c >= 0x620 && c <= 0x64A) ||      // Hebrew, Arabic
         (c >= 0x3041 && c <= 0x3096) || (c >= 0x30A1 && c <= 0x30FA) ||  // kana
         (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7A3);    // Chinese, Korean
}

WhiteCuts::WhiteCuts(const Tokenizer& tokenizer) {
  Effect effect = Effect::passes;
  const Json document = Json::parse("tokenizer", "tokenizer.json", tokenizer.to_json());
  if (document.has("model")) effect = effect_of(document);
  if (effect == Effect::spans || !continues(tokenizer)) return;
  for (auto& row : allowed_) row.fill(true);
  if (document.has("model"))
    for (const AddedToken& token : read_added_tokens(document)) {
      refuse_spanned(token.content);
      std::string lower = token.content;  // as normalizers may produce it
      std::ranges::transform(lower, lower.begin(),
                             [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
      refuse_spanned(lower);
      if (token.rstrip) allowed_[static_cast<unsigned char>(token.content.back())].fill(false);
      if (kWhite.find(token.content.front()) != std::string_view::npos) refuse_all(token.content.front());
    }
  if (effect == Effect::ends) return;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    std::string token = tokenizer.decode(std::array{id});
    for (size_t at; (at = token.find(kSpaceSign)) != token.npos;) token.replace(at, kSpaceSign.size(), " ");
    refuse_spanned(token);
  }
  // A run of characters without tokens may become a single unknown token.
  for (const char white : kWhite) {
    if (!has_token(tokenizer, white)) refuse_all(white);
  }
}

void WhiteCuts::refuse_all(char white) {
  for (auto& row : allowed_) row[index_of(white)] = false;
}

void WhiteCuts::refuse_spanned(std::string_view token) {
  for (size_t at = 1; at < token.size(); ++at)
    if (kWhite.find(token[at]) != kWhite.npos)
      allowed_[static_cast<unsigned char>(token[at - 1])][index_of(token[at])] = false;
}

}  // namespace kintsugi::text

#include "kintsugi/exchange/export_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/text/base64.h"
#include "kintsugi/text/declared_tokens.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::exchange {
namespace {

namespace fs = std::filesystem;

void write_json(const fs::path& path, const base::JsonWriter& json) {
  base::write_file_atomically(path, json.text() + "\n");
}

// The ids that begin and end a text, if the tokenizer has them.
struct Ends {
  std::optional<int32_t> begin, end;
  std::vector<int32_t> stops = {};
  bool changed = false;  // texts begin differently than in the tokenizer's own template
};

// A model trained here has seen documents that begin as those of its corpus do, regardless of the template. An
// encoder's template, which also has a token after the text, matches its samples.
Ends ends_of(const text::Tokenizer& tokenizer, bool made_elsewhere) {
  Ends ends = {.begin = {}, .end = tokenizer.end_of_text(), .stops = tokenizer.stops()};
  const text::SpecialTokens special = tokenizer.special_tokens();
  if (!special.before.empty()) ends.begin = special.before.front();
  if (made_elsewhere || !special.after.empty()) return ends;
  const auto begin = tokenizer.begin_of_document();
  ends.changed = begin != ends.begin;
  ends.begin = begin;
  return ends;
}

TextIds ids_of(const Ends& ends) {
  TextIds ids = {.begin = ends.begin ? ends.begin : ends.end, .ends = ends.stops};
  if (ids.ends.empty() && ends.end) ids.ends = {*ends.end};
  return ids;
}

void write_generation(const fs::path& folder, const TextIds& ids) {
  base::JsonWriter json(2);
  json.object([&] {
    json.key("_from_model_config").value(true);
    write_text_ids(ids, json);
  });
  write_json(folder / "generation_config.json", json);
}

std::unique_ptr<text::Tokenizer> tokenizer_in(const std::string& json, const config::Settings& settings) {
  return text::with_begin_of_texts(text::parse_tokenizer(json, "tokenizer.json"),
                                   config::begins_samples(settings) ? settings.data.first_token : -1);
}

// SentencePiece's file, which our own format stores as base64.
std::string sentencepiece_file(const std::string& json) {
  const auto document = base::Json::parse("tokenizer", "tokenizer.json", json);
  const auto content = text::read_base64(document.at("file").text());
  base::require(content.has_value(), "exchange", "the tokenizer holds no file");
  return *content;
}

}  // namespace

TextIds text_ids(const std::string& json, const config::Settings& settings, bool made_elsewhere) {
  return json.empty() ? TextIds() : ids_of(ends_of(*tokenizer_in(json, settings), made_elsewhere));
}

std::string export_tokenizer(const fs::path& folder, const std::string& json, const config::Settings& settings,
                             bool made_elsewhere) {
  const bool begins = config::begins_samples(settings);
  if (json.empty()) {
    if (config::of_tokens(config::objective(settings.model))) write_generation(folder, {});
    return "";
  }
  const auto tokenizer = tokenizer_in(json, settings);
  const Ends ends = ends_of(*tokenizer, made_elsewhere);
  write_generation(folder, ids_of(ends));
  const bool sentencepiece = tokenizer->kind() == "sentencepiece";
  const bool own = tokenizer->kind() == "bytes" || tokenizer->kind() == "chars";
  std::string plain = text::without_declared(json);
  if (!own && !sentencepiece) {
    // The beginning of documents may be declared but absent from the template.
    const auto template_of = text::parse_tokenizer(plain, "tokenizer.json")->special_tokens();
    const auto begins = template_of.before.empty() ? std::nullopt : std::optional(template_of.before.front());
    if (template_of.after.empty() && begins != ends.begin)
      plain = text::with_begin(plain, ends.begin, ends.begin ? tokenizer->decode(std::array{*ends.begin}) : "");
  }
  if (sentencepiece)
    base::write_file_atomically(folder / "tokenizer.model", sentencepiece_file(json));
  else
    base::write_file_atomically(folder / "tokenizer.json", plain);
  if (tokenizer->kind() == "bytes" || tokenizer->kind() == "chars")
    return fmt::format("transformers has no tokenizer of {}: tokenizer.json is for kintsugi", tokenizer->kind());
  base::JsonWriter config(2);
  config.object([&] {
    config.key("tokenizer_class").value(sentencepiece ? "LlamaTokenizer" : "PreTrainedTokenizerFast");
    config.key("model_max_length").value(settings.model.context);
    config.key("clean_up_tokenization_spaces").value(false);
    if (begins) config.key(kBeginSamples).value(true);
    if (sentencepiece && ends.changed) config.key("add_bos_token").value(ends.begin.has_value());
    for (const auto& [name, id] : {std::pair{"bos_token", ends.begin}, std::pair{"eos_token", ends.end}})
      if (id && !sentencepiece) config.key(name).value(tokenizer->decode(std::array{*id}));
  });
  write_json(folder / "tokenizer_config.json", config);
  return "";
}

}  // namespace kintsugi::exchange

#include "kintsugi/exchange/export_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/text/base64.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::exchange {
namespace {

namespace fs = std::filesystem;

void write_json(const fs::path& path, const base::JsonWriter& json) {
  base::write_file_atomically(path, json.text() + "\n");
}

// The ids that begin and end a text, as far as the tokenizer has them.
struct Ends {
  std::optional<int32_t> begin, end;
};

Ends ends_of(const text::Tokenizer& tokenizer) {
  Ends ends = {.begin = {}, .end = tokenizer.end_of_text()};
  if (const auto special = tokenizer.special_tokens(); !special.before.empty()) ends.begin = special.before.front();
  return ends;
}

void write_generation(const fs::path& folder, const Ends& ends) {
  base::JsonWriter json(2);
  json.object([&] {
    json.key("_from_model_config").value(true);
    if (ends.begin) json.key("bos_token_id").value(*ends.begin);
    if (ends.end) json.key("eos_token_id").value(*ends.end);
  });
  write_json(folder / "generation_config.json", json);
}

// SentencePiece's file, which our own form holds as base64.
std::string sentencepiece_file(const std::string& json) {
  const auto document = base::Json::parse("tokenizer", "tokenizer.json", json);
  const auto content = text::read_base64(document.at("file").text());
  base::require(content.has_value(), "exchange", "the tokenizer holds no file");
  return *content;
}

}  // namespace

std::string export_tokenizer(const fs::path& folder, const std::string& json, const config::Model& model) {
  if (json.empty()) {
    write_generation(folder, {});
    return "";
  }
  const auto tokenizer = text::parse_tokenizer(json, "tokenizer.json");
  const Ends ends = ends_of(*tokenizer);
  write_generation(folder, ends);
  const bool sentencepiece = tokenizer->kind() == "sentencepiece";
  if (sentencepiece)
    base::write_file_atomically(folder / "tokenizer.model", sentencepiece_file(json));
  else
    base::write_file_atomically(folder / "tokenizer.json", json);
  if (tokenizer->kind() == "bytes" || tokenizer->kind() == "chars")
    return fmt::format("transformers has no tokenizer of {}: tokenizer.json is for kintsugi", tokenizer->kind());
  base::JsonWriter config(2);
  config.object([&] {
    config.key("tokenizer_class").value(sentencepiece ? "LlamaTokenizer" : "PreTrainedTokenizerFast");
    config.key("model_max_length").value(model.context);
    config.key("clean_up_tokenization_spaces").value(false);
    for (const auto& [name, id] : {std::pair{"bos_token", ends.begin}, std::pair{"eos_token", ends.end}})
      if (id && !sentencepiece) config.key(name).value(tokenizer->decode(std::array{*id}));
  });
  write_json(folder / "tokenizer_config.json", config);
  return "";
}

}  // namespace kintsugi::exchange

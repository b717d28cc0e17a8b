#include "kintsugi/text/tokenizer.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/lfs_pointer.h"
#include "kintsugi/text/bytes_tokenizer.h"
#include "kintsugi/text/chars_tokenizer.h"
#include "kintsugi/text/declared_tokens.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/own_json.h"
#include "kintsugi/text/pipeline_tokenizer.h"
#include "kintsugi/text/ranked_bpe.h"
#include "kintsugi/text/read_bpe_files.h"
#include "kintsugi/text/read_bpe_json.h"
#include "kintsugi/text/sentencepiece_tokenizer.h"
#include "kintsugi/text/vocab_text.h"

namespace kintsugi::text {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Tokenizer> read_own(const base::Json& document, std::string_view where) {
  const base::Json format = document.at("format");
  if (format.text() != kOwnFormat) format.refuse(base::in_quotes(kOwnFormat));
  const base::Json kind = document.at("kind");
  if (kind.text() == "bytes") return read_bytes_json(document);
  if (kind.text() == "chars") return read_chars_json(document);
  if (kind.text() == "sentencepiece") return read_sentencepiece_json(document, where);
  kind.refuse("\"bytes\", \"chars\" or \"sentencepiece\"");
}

// A tokenizer from a file other than tokenizer.json, with declarations from other files of its folder.
std::unique_ptr<Tokenizer> with_files_beside(const std::string& json, const fs::path& path) {
  auto tokenizer = parse_tokenizer(json, path.string());
  const auto document = base::Json::parse("tokenizer", path.string(), json);
  if (!declared_in(document).empty()) return tokenizer;
  const bool has_template = find_part(document, "post_processor").has_value();
  DeclaredTokens declared = declared_beside(path.parent_path(), *tokenizer, has_template);
  return with_declared(std::move(tokenizer), std::move(declared));
}

VocabTextOptions vocab_text_options(const fs::path& path) {
  VocabTextOptions options;
  const fs::path file = path.parent_path() / "tokenizer_config.json";
  if (!fs::exists(file)) return options;
  const auto config = base::Json::parse("tokenizer", file.string(), base::read_file(file));
  options.lowercase = flag(config, "do_lower_case", true);
  options.chinese = flag(config, "tokenize_chinese_chars", true);
  if (const auto strip = find_part(config, "strip_accents"))
    options.strip_accents = strip->boolean() ? "true" : "false";
  return options;
}

// The only tiktoken file in a folder; empty if there are none or several.
fs::path only_tiktoken(const fs::path& folder) {
  fs::path found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".tiktoken") continue;
    if (!found.empty()) return {};
    found = entry.path();
  }
  return found;
}

}  // namespace

std::unique_ptr<Tokenizer> find_tokenizer(const fs::path& folder) {
  const fs::path json = folder / "tokenizer.json";
  if (fs::exists(json)) {
    const std::string content = base::read_file(json);
    auto tokenizer = parse_tokenizer(content, json.string());
    const auto document = base::Json::parse("tokenizer", json.string(), content);
    if (!document.has("model") || !declared_in(document).empty()) return tokenizer;
    DeclaredTokens declared = declared_beside(folder, *tokenizer, find_part(document, "post_processor").has_value());
    return with_declared(std::move(tokenizer), std::move(declared));
  }
  constexpr std::pair<const char*, const char*> kPairs[] = {{"encoder.json", "vocab.bpe"},
                                                            {"vocab.json", "merges.txt"}};
  for (const auto& [vocabulary, merges] : kPairs) {
    const bool has_vocabulary = fs::exists(folder / vocabulary);
    const bool has_merges = fs::exists(folder / merges);
    if (has_vocabulary && has_merges) return read_bpe_files(folder / vocabulary, folder / merges);
    if (has_vocabulary || has_merges) {
      throw base::UserError("tokenizer", "{}: there is {}, but {}, which belongs to it, is missing", folder.string(),
                            has_vocabulary ? vocabulary : merges, has_vocabulary ? merges : vocabulary);
    }
  }
  for (const char* name : {"tokenizer.model", "spiece.model", "tekken.json", "vocab.txt"}) {
    if (fs::exists(folder / name)) return load_tokenizer(folder / name);
  }
  if (const fs::path file = only_tiktoken(folder); !file.empty()) return load_tokenizer(file);
  return nullptr;
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path) {
  if (fs::is_directory(path)) {
    if (auto tokenizer = find_tokenizer(path)) return tokenizer;
    throw base::UserError("tokenizer",
                          "{}: the folder has no tokenizer.json, nor encoder.json and vocab.bpe, nor vocab.json and "
                          "merges.txt, nor tokenizer.model, tekken.json, vocab.txt or one .tiktoken",
                          path.string());
  }
  if (!fs::exists(path)) throw base::UserError("tokenizer", "{}: no such file or directory", path.string());
  const std::string content = base::read_file(path);
  if (base::is_lfs_pointer(content))
    throw base::UserError("tokenizer", "{}: this is {}", path.string(), base::kLfsAdvice);
  const std::string where = path.string();
  if (is_tiktoken(content)) return with_files_beside(tiktoken_json(content, where), path);
  if (path.extension() == ".model") return make_sentencepiece_tokenizer(content, where);
  if (path.extension() == ".txt")
    return with_files_beside(vocab_text_json(content, where, vocab_text_options(path)), path);
  return parse_tokenizer(content, path.string());
}

std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view json, std::string_view where) {
  const auto document = base::Json::parse("tokenizer", where, json);
  if (document.has("model")) {
    return with_declared(
        is_byte_level_bpe(document) ? read_bpe_json(document, json, where) : read_pipeline_json(document, json, where),
        declared_in(document));
  }
  if (document.has("format")) return read_own(document, where);
  if (document.has("config") && document.has("vocab")) return parse_tokenizer(tekken_json(json, where), where);
  throw base::UserError("tokenizer",
                        "{}: not a tokenizer.json: it has neither \"model\" nor \"format\"; of encoder.json and "
                        "vocab.bpe, or vocab.json and merges.txt, name the folder",
                        where);
}

}  // namespace kintsugi::text

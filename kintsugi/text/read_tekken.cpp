// Mistral's tekken.json: { "config": { "pattern", "default_vocab_size", "default_num_special_tokens" }, "vocab":
// [{ "rank", "token_bytes": base64 }], "special_tokens": [{ "rank", "token_str" }] }. Special tokens have the first
// ids.
#include "kintsugi/base/error.h"
#include "kintsugi/base/json.h"
#include "kintsugi/text/base64.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/ranked_bpe.h"

namespace kintsugi::text {
namespace {

// For files that do not list them.
constexpr std::string_view kTekkenSpecial[] = {"<unk>",
                                               "<s>",
                                               "</s>",
                                               "[INST]",
                                               "[/INST]",
                                               "[AVAILABLE_TOOLS]",
                                               "[/AVAILABLE_TOOLS]",
                                               "[TOOL_RESULTS]",
                                               "[/TOOL_RESULTS]",
                                               "[TOOL_CALLS]",
                                               "[IMG]",
                                               "<pad>",
                                               "[IMG_BREAK]",
                                               "[IMG_END]",
                                               "[PREFIX]",
                                               "[MIDDLE]",
                                               "[SUFFIX]",
                                               "[SYSTEM_PROMPT]",
                                               "[/SYSTEM_PROMPT]",
                                               "[TOOL_CONTENT]"};

}  // namespace

std::string tekken_json(std::string_view content, std::string_view where) {
  const auto document = base::Json::parse("tokenizer", where, content);
  const base::Json config = document.at("config");
  RankedBpe bpe;
  bpe.pattern = config.at("pattern").text();
  const int64_t num_special = config.at("default_num_special_tokens").whole(0, 1 << 20);
  const int64_t size = config.at("default_vocab_size").whole(num_special, 1 << 24);
  bpe.first_id = static_cast<int32_t>(num_special);
  std::vector<std::string> special(static_cast<size_t>(num_special));
  for (size_t i = 0; i < special.size() && i < std::size(kTekkenSpecial); ++i) special[i] = kTekkenSpecial[i];
  if (const auto list = find_part(document, "special_tokens"))
    for (const base::Json& token : list->list())
      special[static_cast<size_t>(token.at("rank").whole(0, num_special - 1))] = token.at("token_str").text();
  for (size_t i = 0; i < special.size(); ++i)
    bpe.special.emplace_back(special[i].empty() ? fmt::format("<SPECIAL_{}>", i) : special[i], static_cast<int32_t>(i));
  bpe.tokens.resize(static_cast<size_t>(size - num_special));
  for (const base::Json& token : document.at("vocab").list()) {
    const auto rank = static_cast<size_t>(token.at("rank").whole(0, 1 << 24));
    if (rank >= bpe.tokens.size()) continue;  // the file exceeds the vocabulary in use
    const base::Json text = token.at("token_bytes");
    const auto bytes = read_base64(text.text());
    if (!bytes || bytes->empty()) text.refuse("the token's bytes in base64");
    if (!bpe.tokens[rank].empty()) token.at("rank").fail("the rank {} is there twice", rank);
    bpe.tokens[rank] = *bytes;
  }
  if (num_special >= 3 && special[1] == "<s>" && special[2] == "</s>") {
    bpe.begin = "<s>";
    bpe.end = "</s>";
  }
  return write_ranked_json(bpe);
}

}  // namespace kintsugi::text

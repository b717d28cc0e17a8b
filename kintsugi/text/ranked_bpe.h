// Byte-level BPE whose file lists tokens by rank and no merges: tiktoken's and tekken's. Two neighbours merge where
// their bytes together are a token, the one of the lowest rank first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::text {

struct RankedBpe {
  std::vector<std::string> tokens;  // [rank], as bytes; "" where there is none
  int32_t first_id = 0;             // of rank 0
  std::string pattern;              // that cuts words
  std::vector<std::pair<std::string, int32_t>> special;
  std::string begin;  // the special token before each text; "" for none
  std::string end;    // that ends a document; "" for none
};

// The tokenizer.json of the same tokenizer, with the merges that transformers gives such files.
std::string write_ranked_json(RankedBpe bpe);

// Whether the beginning of a file is tiktoken's: on each line a token in base64, and its rank.
bool is_tiktoken(std::string_view content);
// The tokenizer.json of a tiktoken file. Such a file has neither pattern nor special tokens: they are those of the
// published tokenizer (r50k_base, p50k_base, cl100k_base, o200k_base, Llama 3's, Qwen's) whose name the file has, or
// whose number of tokens; of others cl100k_base's pattern, as transformers has it, and no special tokens. UserError for
// a damaged file.
std::string tiktoken_json(std::string_view content, std::string_view where);

// The tokenizer.json of Mistral's tekken.json. UserError for a damaged file.
std::string tekken_json(std::string_view content, std::string_view where);

}  // namespace kintsugi::text

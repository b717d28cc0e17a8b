// Byte-level BPE whose file lists tokens by rank without merges: tiktoken's and tekken's. Two adjacent tokens merge if
// their concatenation is a token, lowest rank first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::text {

struct RankedBpe {
  std::vector<std::string> tokens;  // [rank], as bytes; "" if there is none
  int32_t first_id = 0;             // of rank 0
  std::string pattern;              // splits words
  std::vector<std::pair<std::string, int32_t>> special;
  std::string begin;  // the special token before each text; "": none
  std::string end;    // ends a document; "": none
};

// The tokenizer.json of the same tokenizer, with the merges that transformers generates for such files.
std::string write_ranked_json(RankedBpe bpe);

// Whether a file begins as tiktoken's do: each line has a base64 token and its rank.
bool is_tiktoken(std::string_view content);
// The tokenizer.json of a tiktoken file. Such a file has neither pattern nor special tokens: uses those of the
// published tokenizer (r50k_base, p50k_base, cl100k_base, o200k_base, Llama 3's, Qwen's) that matches by file name or
// number of tokens; otherwise cl100k_base's pattern, as transformers does, and no special tokens. Throws UserError for
// a malformed file.
std::string tiktoken_json(std::string_view content, std::string_view where);

// The tokenizer.json of Mistral's tekken.json. Throws UserError for a malformed file.
std::string tekken_json(std::string_view content, std::string_view where);

}  // namespace kintsugi::text

// Tokens matched literally in the text before any other processing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"

namespace kintsugi::text {

// The flags are those of Hugging Face's tokenizer.json.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // only if no word character is adjacent
  bool lstrip = false;       // includes white space on its left
  bool rstrip = false;       // and on its right
  bool normalized = false;   // matches normalized text, in its normalized form
  bool special = false;
};

// Reads "added_tokens" of a tokenizer.json; skips empty ones, which match nothing. Throws UserError if they are
// malformed.
std::vector<AddedToken> read_added_tokens(const base::Json& document);

// Numbers the tokens as Hugging Face's tokenizers 0.23 do, ignoring ids in the file: a text in the model keeps the
// model's id; the others are numbered in order after the model's tokens. Of two with equal text, the last counts.
// `id_in_model`: -1 if the model lacks the text.
void number_added_tokens(std::vector<AddedToken>& tokens, size_t num_model_tokens,
                         const std::function<int32_t(const std::string&)>& id_in_model);

// Finds the id of the end-of-text token by its names in published vocabularies.
std::optional<int32_t> find_end_of_text(const std::vector<AddedToken>& tokens);

// Finds the leftmost token, and among those at the same position the longest. Const use is thread-safe.
class AddedTokens {
 public:
  // The content of a token must not be empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  // Calls `text` for text between tokens (never empty) and `token` for each token, in order.
  void split(std::string_view whole, const std::function<void(std::string_view)>& text,
             const std::function<void(int32_t id)>& token) const;

 private:
  int32_t follow(int32_t node, char byte) const;
  const AddedToken* match(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  // A trie: the root is indexed by byte; the edges of other nodes are in one array. Node 0 is none.
  struct Edge {
    char byte;
    int32_t node;
  };
  std::array<int32_t, 256> root_{};
  std::vector<int32_t> first_edge_;  // [node + 1]
  std::vector<Edge> edges_;
  std::vector<int32_t> token_at_;  // [node], an index into tokens_, -1 where none ends
};

}  // namespace kintsugi::text

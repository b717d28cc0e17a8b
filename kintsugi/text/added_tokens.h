// Tokens that are matched literally in the text, before any other processing.
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
  bool lstrip = false;       // includes the white space on its left
  bool rstrip = false;       // and on its right
  bool normalized = false;   // matched in normalized text, in its normalized form
  bool special = false;
};

// The "added_tokens" of a tokenizer.json, without empty ones, which match nothing. UserError if they are damaged.
std::vector<AddedToken> read_added_tokens(const base::Json& document);

// Numbers the tokens as Hugging Face's tokenizers do, whatever ids the file gives them: a text that the model has keeps
// the model's id; the others follow the number of the model's tokens, in order. Of two with one text, the last counts.
// `id_in_model`: -1 where the model lacks the text.
void number_added_tokens(std::vector<AddedToken>& tokens, size_t num_model_tokens,
                         const std::function<int32_t(const std::string&)>& id_in_model);

// The id of the token that ends a document, by the names that published vocabularies give it.
std::optional<int32_t> find_end_of_text(const std::vector<AddedToken>& tokens);

// Finds the leftmost token, and of those that begin there the longest. Const use is safe from several threads at once.
class AddedTokens {
 public:
  // The content of a token must not be empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  // Calls `text` for the text between tokens (never empty) and `token` for each token, in order.
  void split(std::string_view whole, const std::function<void(std::string_view)>& text,
             const std::function<void(int32_t id)>& token) const;

 private:
  int32_t follow(int32_t node, char byte) const;
  const AddedToken* match(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  // A trie: the root indexed by byte, the edges of each other node in one array. Node 0 is none.
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

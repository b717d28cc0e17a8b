#include "kintsugi/text/added_tokens.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kintsugi/text/json_part.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

// The most likely first.
constexpr std::string_view kEnds[] = {
    "<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "</s>", "<eos>", "[EOS]", "[SEP]"};

size_t count_space_before(std::string_view text) {
  size_t n = 0;
  while (true) {
    const Character c = read_last_character(text.substr(0, text.size() - n));
    if (c.size == 0 || !is_space(c.code)) return n;
    n += c.size;
  }
}

size_t count_space_after(std::string_view text) {
  size_t n = 0;
  while (true) {
    const Character c = read_character(text.substr(n));
    if (c.size == 0 || !is_space(c.code)) return n;
    n += c.size;
  }
}

bool touches_word(std::string_view before, std::string_view after) {
  const Character left = read_last_character(before);
  const Character right = read_character(after);
  return (left.size > 0 && is_word(left.code)) || (right.size > 0 && is_word(right.code));
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const base::Json& document) {
  std::vector<AddedToken> tokens;
  const auto list = find_part(document, "added_tokens");
  if (!list) return tokens;
  for (const base::Json& entry : list->list()) {
    AddedToken token;
    token.content = entry.at("content").text();
    token.id = static_cast<int32_t>(entry.at("id").whole(0, INT32_MAX));
    token.single_word = flag(entry, "single_word", false);
    token.lstrip = flag(entry, "lstrip", false);
    token.rstrip = flag(entry, "rstrip", false);
    token.special = flag(entry, "special", false);
    token.normalized = flag(entry, "normalized", !token.special);
    if (!token.content.empty()) tokens.push_back(std::move(token));
  }
  return tokens;
}

void number_added_tokens(std::vector<AddedToken>& tokens, size_t num_model_tokens,
                         const std::function<int32_t(const std::string&)>& id_in_model) {
  std::map<std::string, size_t> places;
  std::vector<AddedToken> numbered;
  auto next = static_cast<int32_t>(num_model_tokens);
  for (AddedToken& token : tokens) {
    const auto [place, is_new] = places.emplace(token.content, numbered.size());
    if (is_new) {
      const int32_t known = id_in_model(token.content);
      token.id = known >= 0 ? known : next++;
      numbered.push_back(std::move(token));
    } else {
      token.id = numbered[place->second].id;
      numbered[place->second] = std::move(token);
    }
  }
  tokens = std::move(numbered);
}

std::optional<int32_t> find_end_of_text(const std::vector<AddedToken>& tokens) {
  for (const std::string_view end : kEnds) {
    for (const AddedToken& token : tokens)
      if (token.content == end) return token.id;
  }
  return std::nullopt;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), token_at_(1, -1) {
  std::map<std::pair<int32_t, char>, int32_t> next_of;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    int32_t node = 0;
    for (size_t k = 0; k < content.size(); ++k) {
      int32_t& next = k == 0 ? root_[static_cast<uint8_t>(content[0])] : next_of[{node, content[k]}];
      if (next == 0) {
        next = static_cast<int32_t>(token_at_.size());
        token_at_.push_back(-1);
      }
      node = next;
    }
    token_at_[node] = static_cast<int32_t>(i);
  }
  for (const auto& [from, to] : next_of) {
    first_edge_.resize(from.first + 1, static_cast<int32_t>(edges_.size()));
    edges_.push_back({from.second, to});
  }
  first_edge_.resize(token_at_.size() + 1, static_cast<int32_t>(edges_.size()));
}

int32_t AddedTokens::follow(int32_t node, char byte) const {
  for (int32_t i = first_edge_[node]; i < first_edge_[node + 1]; ++i) {
    if (edges_[i].byte == byte) return edges_[i].node;
  }
  return 0;
}

const AddedToken* AddedTokens::match(std::string_view text) const {
  int32_t node = root_[static_cast<uint8_t>(text[0])];
  int32_t longest = -1;
  for (size_t k = 1; node != 0; ++k) {
    if (token_at_[node] >= 0) longest = token_at_[node];
    if (k == text.size()) break;
    node = follow(node, text[k]);
  }
  return longest < 0 ? nullptr : &tokens_[longest];
}

void AddedTokens::split(std::string_view whole, const std::function<void(std::string_view)>& text,
                        const std::function<void(int32_t id)>& token) const {
  size_t done = 0;
  size_t at = 0;
  while (!tokens_.empty()) {
    while (at < whole.size() && root_[static_cast<uint8_t>(whole[at])] == 0) ++at;
    if (at == whole.size()) break;
    const AddedToken* found = match(whole.substr(at));
    if (!found) {
      ++at;
      continue;
    }
    const size_t end = at + found->content.size();
    if (found->single_word && touches_word(whole.substr(0, at), whole.substr(end))) {
      at = end;
      continue;
    }
    const size_t space = found->lstrip ? count_space_before(whole.substr(done, at - done)) : 0;
    if (at - space > done) text(whole.substr(done, at - space - done));
    token(found->id);
    done = at = end + (found->rstrip ? count_space_after(whole.substr(end)) : 0);
  }
  if (done < whole.size()) text(whole.substr(done));
}

}  // namespace kintsugi::text

#include "kintsugi/text/vocabulary.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/bpe_vocabulary.h"
#include "kintsugi/text/json_part.h"

namespace kintsugi::text {

using base::in_quotes;

int32_t Vocabulary::find(const std::string& token) const {
  const auto found = ids.find(token);
  return found == ids.end() ? -1 : found->second;
}

Vocabulary read_vocabulary(const base::Json& object) {
  Vocabulary vocabulary;
  const base::Json::Items members = object.members();
  if (members.empty()) object.fail("the vocabulary is empty");
  vocabulary.ids.reserve(members.size());
  const size_t most = largest_id(members.size());
  for (const base::Json& member : members) {
    const std::string token(member.key());
    const auto id = static_cast<size_t>(member.whole(0, INT32_MAX));
    if (id > most)
      member.fail("token {} has id {}, which is too large for a vocabulary of {} tokens", in_quotes(token), id,
                  members.size());
    if (vocabulary.tokens.size() <= id) vocabulary.tokens.resize(id + 1);
    if (!vocabulary.tokens[id].empty()) {
      member.fail("tokens {} and {} have the same id {}; ids must differ", in_quotes(vocabulary.tokens[id]),
                  in_quotes(token), id);
    }
    vocabulary.tokens[id] = token;
    vocabulary.ids.emplace(token, static_cast<int32_t>(id));
  }
  return vocabulary;
}

int32_t find_token(const base::Json& model, std::string_view key, const Vocabulary& vocabulary) {
  const auto name = find_part(model, key);
  if (!name) return -1;
  const int32_t id = vocabulary.find(std::string(name->text()));
  if (id < 0) name->refuse("a token of the vocabulary");
  return id;
}

void refuse_unknown(std::string_view text) {
  const Character c = read_character(text);
  throw base::UserError("tokenizer", "the text has {}, for which the vocabulary has no token, not even an unknown one",
                        c.size > 0 ? describe_character(c.code)
                                   : fmt::format("byte 0x{:02x}, which is not UTF-8", static_cast<uint8_t>(text[0])));
}

void CharacterIds::set(char32_t code, int32_t id) {
  if (ids_.size() <= code) ids_.resize(code + 1, -1);
  ids_[code] = id;
}

}  // namespace kintsugi::text

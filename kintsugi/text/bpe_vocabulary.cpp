#include "kintsugi/text/bpe_vocabulary.h"

#include <unordered_map>
#include <unordered_set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/byte_symbols.h"

namespace kintsugi::text {
namespace {

constexpr size_t kFewUnmade = 8;

using base::in_quotes;
using Ids = std::unordered_map<std::string, int32_t>;

Ids read_ids(BpeDefinition& definition, const base::Json& vocabulary, AddedIds added_ids) {
  Ids ids;
  const base::Json::Items members = vocabulary.members();
  ids.reserve(members.size());
  const size_t most = largest_id(members.size() + definition.added.size());
  std::vector<const std::string*> taken;
  const auto take = [&](const std::string& token, int32_t id) {
    if (static_cast<size_t>(id) > most) {
      throw base::UserError("tokenizer", "{}: token {} has id {}, which is too large for a vocabulary of {} tokens",
                            definition.where, in_quotes(token), id, members.size());
    }
    if (taken.size() <= static_cast<size_t>(id)) taken.resize(static_cast<size_t>(id) + 1);
    if (taken[id] && *taken[id] != token) {
      throw base::UserError("tokenizer", "{}: tokens {} and {} have the same id {}; ids must differ", definition.where,
                            in_quotes(*taken[id]), in_quotes(token), id);
    }
    taken[id] = &token;
  };
  for (const base::Json& member : members) {
    const int32_t id = read_id(member);
    const auto place = ids.emplace(member.key(), id).first;
    take(place->first, id);
  }
  const auto find = [&](const std::string& token) {
    const auto found = ids.find(token);
    return found == ids.end() ? -1 : found->second;
  };
  if (added_ids == AddedIds::numbered) number_added_tokens(definition.added, members.size(), find);
  for (const AddedToken& added : definition.added) {
    const int32_t known = find(added.content);
    if (known >= 0 && known != added.id) {
      throw base::UserError("tokenizer", "{}: token {} has id {} in the vocabulary and {} among the added tokens",
                            definition.where, in_quotes(added.content), known, added.id);
    }
    take(added.content, added.id);
  }
  return ids;
}

int32_t find_part(const Ids& ids, const std::string& part, const SpelledMerge& merge, size_t number,
                  std::string_view where) {
  const auto found = ids.find(part);
  if (found != ids.end()) return found->second;
  throw base::UserError("tokenizer",
                        "{}: merge {}, {}, needs the token {}, which the vocabulary lacks; both must come from the "
                        "same tokenizer",
                        where, number, in_quotes(merge.first + " " + merge.second), in_quotes(part));
}

// A truncated list of merges leaves tokens that no merge produces. Published vocabularies contain a few as well.
void check_all_made(const BpeDefinition& definition, const std::unordered_set<int32_t>& added) {
  std::vector<bool> made(definition.model.tokens.size());
  for (const BpeMerge& merge : definition.model.merges) made[merge.merged] = true;
  size_t num_unmade = 0;
  for (size_t id = 0; id < made.size(); ++id) {
    num_unmade += definition.model.tokens[id].size() > 1 && !made[id] && !added.contains(static_cast<int32_t>(id));
  }
  if (num_unmade <= kFewUnmade || num_unmade * 100 <= made.size()) return;
  throw base::UserError("tokenizer",
                        "{}: of {} tokens {} are made by none of the {} merges; the list of merges seems to be cut off",
                        definition.where, made.size(), num_unmade, definition.model.merges.size());
}

}  // namespace

SpelledMerge read_merge(std::string_view line, size_t number, std::string_view where) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos) {
    throw base::UserError("tokenizer", "{}: merge {} is {}, and should be two tokens with a space between", where,
                          number, in_quotes(line));
  }
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

std::vector<SpelledMerge> read_merges(const base::Json& list, std::string_view where) {
  const base::Json::Items items = list.list();
  std::vector<SpelledMerge> merges;
  merges.reserve(items.size());
  for (const base::Json& merge : items) {
    if (merge.is_text()) {
      merges.push_back(read_merge(merge.text(), merges.size() + 1, where));
    } else if (merge.is_list() && merge.list().size() == 2) {
      merges.emplace_back(merge.list()[0].text(), merge.list()[1].text());
    } else {
      merge.refuse("\"left right\" or [\"left\", \"right\"]");
    }
  }
  return merges;
}

int32_t read_id(const base::Json& value) {
  return static_cast<int32_t>(value.whole(0, INT32_MAX));
}

size_t largest_id(size_t num_tokens) {
  constexpr size_t kAlways = 1 << 20;
  return kAlways + 4 * num_tokens;
}

void set_vocabulary(BpeDefinition& definition, const base::Json& vocabulary, const std::vector<SpelledMerge>& merges,
                    AddedIds added_ids) {
  if (vocabulary.members().empty()) throw base::UserError("tokenizer", "{}: the vocabulary is empty", definition.where);
  const Ids ids = read_ids(definition, vocabulary, added_ids);
  std::unordered_set<int32_t> added;
  for (const AddedToken& token : definition.added) added.insert(token.id);
  std::vector<std::string>& tokens = definition.model.tokens;
  for (const auto& [token, id] : ids) {
    if (tokens.size() <= static_cast<size_t>(id)) tokens.resize(id + 1);
    std::string bytes;
    if (read_symbols(token, bytes))
      tokens[id] = std::move(bytes);
    else if (!added.contains(id))
      definition.unspelled.emplace_back(id, token);
  }
  std::unordered_map<std::string, size_t> last;
  const auto spelled = [](const SpelledMerge& merge) { return merge.first + " " + merge.second; };
  for (size_t i = 0; i < merges.size(); ++i) last[spelled(merges[i])] = i;
  for (size_t i = 0; i < merges.size(); ++i) {
    const SpelledMerge& merge = merges[i];
    const auto find = [&](const std::string& part) { return find_part(ids, part, merge, i + 1, definition.where); };
    const BpeMerge found = {find(merge.first), find(merge.second), find(merge.first + merge.second)};
    if (last.at(spelled(merge)) == i) definition.model.merges.push_back(found);
  }
  if (!definition.model.prefer_whole_words) check_all_made(definition, added);
}

}  // namespace kintsugi::text

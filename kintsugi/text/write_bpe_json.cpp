#include "kintsugi/text/write_bpe_json.h"

#include <nlohmann/json.hpp>

#include "kintsugi/base/error.h"
#include "kintsugi/text/byte_symbols.h"

namespace kintsugi::text {
namespace {

using nlohmann::ordered_json;

// A table of pairs, in the order of ids. ordered_json searches for a key before it inserts one, in linear time, so the
// pairs are inserted directly into its container; they are distinct.
ordered_json write_vocabulary(const BpeDefinition& definition) {
  ordered_json table = ordered_json::object();
  auto& entries = table.get_ref<ordered_json::object_t&>();
  std::vector<std::string> tokens(definition.model.tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) tokens[id] = spell_bytes(definition.model.tokens[id]);
  for (const AddedToken& token : definition.added) {
    if (tokens.size() <= static_cast<size_t>(token.id)) tokens.resize(token.id + 1);
    tokens[token.id] = token.content;
  }
  for (size_t id = 0; id < tokens.size(); ++id) entries.emplace_back(tokens[id], id);
  return table;
}

ordered_json write_byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
}

}  // namespace

std::string write_bpe_json(const BpeDefinition& definition) {
  base::require(definition.patterns.size() == 1 && definition.normal_forms.empty() && !definition.add_prefix_space,
                "tokenizer", "{} is written as if it were GPT-2's", definition.where);
  ordered_json added = ordered_json::array();
  for (const AddedToken& token : definition.added) {
    added.push_back({{"id", token.id},
                     {"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  }
  ordered_json merges = ordered_json::array();
  for (const BpeMerge& merge : definition.model.merges) {
    merges.push_back(spell_bytes(definition.model.tokens[merge.left]) + " " +
                     spell_bytes(definition.model.tokens[merge.right]));
  }
  ordered_json model = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", nullptr},
                        {"continuing_subword_prefix", nullptr},
                        {"end_of_word_suffix", nullptr},
                        {"fuse_unk", false},
                        {"byte_fallback", false}};
  model["vocab"] = write_vocabulary(definition);
  model["merges"] = std::move(merges);
  ordered_json document = {{"version", "1.0"},          {"truncation", nullptr},
                           {"padding", nullptr},        {"added_tokens", std::move(added)},
                           {"normalizer", nullptr},     {"pre_tokenizer", write_byte_level()},
                           {"post_processor", nullptr}, {"decoder", write_byte_level()}};
  document["model"] = std::move(model);
  return document.dump(1, ' ') + "\n";
}

}  // namespace kintsugi::text

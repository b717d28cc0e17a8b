// merges: ["#version: ..." "\n"] { token " " token "\n" }, the first merged first.
// vocabulary: a JSON object { token: id }. Tokens are spelled as byte_symbols.h says.
#include "kintsugi/text/read_bpe_files.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/text/bpe_vocabulary.h"

namespace kintsugi::text {
namespace {

std::vector<SpelledMerge> read_merges(std::string_view content, std::string_view where) {
  std::vector<SpelledMerge> merges;
  for (size_t from = 0; from < content.size();) {
    const size_t end = std::min(content.find('\n', from), content.size());
    std::string_view line = content.substr(from, end - from);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty() && !(from == 0 && line.starts_with("#version"))) {
      merges.push_back(read_merge(line, merges.size() + 1, where));
    }
    from = end + 1;
  }
  if (merges.empty()) throw base::UserError("tokenizer", "{}: there are no merges in it", where);
  return merges;
}

}  // namespace

std::unique_ptr<Tokenizer> read_bpe_files(const std::filesystem::path& vocabulary,
                                          const std::filesystem::path& merges) {
  BpeDefinition definition;
  definition.where = vocabulary.string();
  const auto ids = base::Json::parse("tokenizer", definition.where, base::read_file(vocabulary));
  const auto end = ids.find(kEndOfText);
  if (end) definition.added.push_back({.id = read_id(*end), .content = std::string(kEndOfText), .special = true});
  const std::filesystem::path more = vocabulary.parent_path() / "added_tokens.json";
  if (std::filesystem::exists(more)) {
    const auto added = base::Json::parse("tokenizer", more.string(), base::read_file(more));
    for (const base::Json& token : added.members()) {
      if (token.key() == kEndOfText && end) continue;
      if (token.key().empty()) token.fail("a token is empty");
      definition.added.push_back({.id = read_id(token), .content = std::string(token.key()), .special = true});
    }
  }
  set_vocabulary(definition, ids, read_merges(base::read_file(merges), merges.string()), AddedIds::as_given);
  definition.patterns.emplace_back(kGpt2Pattern, false, definition.where);
  return make_bpe_tokenizer(std::move(definition));
}

}  // namespace kintsugi::text

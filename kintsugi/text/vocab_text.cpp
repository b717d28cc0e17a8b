#include "kintsugi/text/vocab_text.h"

#include <unordered_map>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::text {
namespace {

constexpr std::string_view kUnknown = "[UNK]", kFirst = "[CLS]", kLast = "[SEP]";
constexpr std::string_view kSpecialNames[] = {"[PAD]", kUnknown, kFirst, kLast, "[MASK]"};

using IdOfLine = std::unordered_map<std::string_view, int32_t>;

void write_added_line(base::JsonWriter& out, std::string_view token, int32_t id) {
  out.object([&] {
    out.key("id").value(id).key("content").value(token);
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) out.key(flag).value(false);
    out.key("special").value(true);
  });
}

void write_pair(base::JsonWriter& out, const char* key, std::string_view token, int32_t id) {
  out.key(key).list([&] { out.value(token).value(id); });
}

}  // namespace

std::string vocab_text_json(std::string_view content, std::string_view where, const VocabTextOptions& options) {
  std::vector<std::string_view> tokens;
  IdOfLine ids;
  for (std::string_view rest = content; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view token = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (token.ends_with('\r')) token.remove_suffix(1);
    if (!base::is_utf8(token)) throw base::UserError("tokenizer", "{}:{}: it is not UTF-8", where, tokens.size() + 1);
    ids.insert_or_assign(token, static_cast<int32_t>(tokens.size()));  // of duplicates, the last counts
    tokens.push_back(token);
  }
  if (!ids.contains(kUnknown))
    throw base::UserError("tokenizer", "{}: there is no token {}; a vocab.txt of BERT has a token on each line", where,
                          kUnknown);
  base::JsonWriter out;
  out.object([&] {
    out.key("version").value("1.0").key("truncation").null().key("padding").null();
    out.key("added_tokens").list([&] {
      for (const std::string_view name : kSpecialNames)
        if (const auto found = ids.find(name); found != ids.end()) write_added_line(out, name, found->second);
    });
    out.key("normalizer").object([&] {
      out.key("type").value("BertNormalizer").key("clean_text").value(true);
      out.key("handle_chinese_chars").value(options.chinese).key("strip_accents");
      if (options.strip_accents == "null")
        out.null();
      else
        out.value(options.strip_accents == "true");
      out.key("lowercase").value(options.lowercase);
    });
    out.key("pre_tokenizer").object([&] { out.key("type").value("BertPreTokenizer"); });
    out.key("post_processor");
    if (ids.contains(kFirst) && ids.contains(kLast)) {
      out.object([&] {
        out.key("type").value("BertProcessing");
        write_pair(out, "sep", kLast, ids.at(kLast));
        write_pair(out, "cls", kFirst, ids.at(kFirst));
      });
    } else {
      out.null();
    }
    out.key("decoder").object(
        [&] { out.key("type").value("WordPiece").key("prefix").value("##").key("cleanup").value(true); });
    out.key("model").object([&] {
      out.key("type").value("WordPiece").key("unk_token").value(kUnknown);
      out.key("continuing_subword_prefix").value("##").key("max_input_chars_per_word").value(100);
      out.key("vocab").object([&] {
        for (size_t id = 0; id < tokens.size(); ++id)
          if (ids.at(tokens[id]) == static_cast<int32_t>(id)) out.key(tokens[id]).value(id);
      });
    });
  });
  return out.text();
}

}  // namespace kintsugi::text

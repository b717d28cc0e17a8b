#include "kintsugi/text/write_bpe_json.h"

#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/text/byte_symbols.h"

namespace kintsugi::text {
namespace {

// The tokens as spelled, by id.
std::vector<std::string> spelled_tokens(const BpeDefinition& definition) {
  std::vector<std::string> tokens(definition.model.tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) tokens[id] = spell_bytes(definition.model.tokens[id]);
  for (const AddedToken& token : definition.added) {
    if (tokens.size() <= static_cast<size_t>(token.id)) tokens.resize(token.id + 1);
    tokens[token.id] = token.content;
  }
  return tokens;
}

void write_byte_level(base::JsonWriter& out) {
  out.object([&] {
    out.key("type").value("ByteLevel").key("add_prefix_space").value(false);
    out.key("trim_offsets").value(true).key("use_regex").value(true);
  });
}

void write_added(base::JsonWriter& out, const AddedToken& token) {
  out.object([&] {
    out.key("id").value(token.id).key("content").value(token.content);
    out.key("single_word").value(token.single_word).key("lstrip").value(token.lstrip);
    out.key("rstrip").value(token.rstrip).key("normalized").value(token.normalized).key("special").value(token.special);
  });
}

void write_model(base::JsonWriter& out, const BpeDefinition& definition) {
  out.object([&] {
    out.key("type").value("BPE");
    for (const char* absent : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
      out.key(absent).null();
    out.key("fuse_unk").value(false).key("byte_fallback").value(false);
    out.key("vocab").object([&] {
      int32_t id = 0;
      for (const std::string& token : spelled_tokens(definition)) {
        if (!token.empty()) out.key(token).value(id);
        ++id;
      }
    });
    out.key("merges").list([&] {
      for (const BpeMerge& merge : definition.model.merges)
        out.value(spell_bytes(definition.model.tokens[merge.left]) + " " +
                  spell_bytes(definition.model.tokens[merge.right]));
    });
  });
}

}  // namespace

std::string write_bpe_json(const BpeDefinition& definition) {
  base::require(definition.patterns.size() == 1 && definition.normal_forms.empty() && !definition.add_prefix_space,
                "tokenizer", "{} is written as if it were GPT-2's", definition.where);
  base::JsonWriter out(1);
  out.object([&] {
    out.key("version").value("1.0").key("truncation").null().key("padding").null();
    out.key("added_tokens").list([&] {
      for (const AddedToken& token : definition.added) write_added(out, token);
    });
    out.key("normalizer").null();
    out.key("pre_tokenizer");
    write_byte_level(out);
    out.key("post_processor").null();
    out.key("decoder");
    write_byte_level(out);
    out.key("model");
    write_model(out, definition);
  });
  return out.text() + "\n";
}

}  // namespace kintsugi::text

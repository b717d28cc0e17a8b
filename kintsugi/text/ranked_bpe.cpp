#include "kintsugi/text/ranked_bpe.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "kintsugi/base/json_writer.h"
#include "kintsugi/text/byte_symbols.h"

namespace kintsugi::text {
namespace {

// All ways in which two tokens form each token, in the order of transformers' converter.
std::vector<std::pair<std::string_view, std::string_view>> merges_of(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string_view, size_t> ranks;
  for (size_t rank = 0; rank < tokens.size(); ++rank)
    if (!tokens[rank].empty()) ranks.emplace(tokens[rank], rank);
  std::vector<std::pair<std::string_view, std::string_view>> merges;
  std::vector<std::tuple<size_t, size_t, size_t>> halves;  // ranks, and where the second begins
  for (const std::string_view token : tokens) {
    halves.clear();
    for (size_t at = 1; at < token.size(); ++at) {
      const auto left = ranks.find(token.substr(0, at)), right = ranks.find(token.substr(at));
      if (left != ranks.end() && right != ranks.end()) halves.emplace_back(left->second, right->second, at);
    }
    std::ranges::sort(halves);
    for (const auto& [left, right, at] : halves) merges.emplace_back(token.substr(0, at), token.substr(at));
  }
  return merges;
}

void write_special(base::JsonWriter& out, const std::string& text, int32_t id) {
  out.object([&] {
    out.key("id").value(id).key("content").value(text);
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) out.key(flag).value(false);
    out.key("special").value(true);
  });
}

void write_words(base::JsonWriter& out, const std::string& pattern) {
  out.object([&] {
    out.key("type").value("Sequence");
    out.key("pretokenizers").list([&] {
      out.object([&] {
        out.key("type").value("Split").key("pattern").object([&] { out.key("Regex").value(pattern); });
        out.key("behavior").value("Isolated").key("invert").value(false);
      });
      out.object([&] {
        out.key("type").value("ByteLevel").key("add_prefix_space").value(false);
        out.key("trim_offsets").value(true).key("use_regex").value(false);
      });
    });
  });
}

void write_vocabulary(base::JsonWriter& out, const RankedBpe& bpe) {
  out.key("type").value("BPE");
  for (const char* absent : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
    out.key(absent).null();
  out.key("fuse_unk").value(false).key("byte_fallback").value(false).key("ignore_merges").value(true);
  out.key("vocab").object([&] {
    for (const auto& [text, id] : bpe.special) out.key(text).value(id);
    for (size_t rank = 0; rank < bpe.tokens.size(); ++rank)
      if (!bpe.tokens[rank].empty())
        out.key(spell_bytes(bpe.tokens[rank])).value(bpe.first_id + static_cast<int32_t>(rank));
  });
  out.key("merges").list([&] {
    for (const auto& [left, right] : merges_of(bpe.tokens)) out.value(spell_bytes(left) + " " + spell_bytes(right));
  });
}

}  // namespace

std::string write_ranked_json(RankedBpe bpe) {
  // A token spelled as a special one never results from merges: that text is the special token.
  for (std::string& token : bpe.tokens)
    if (const std::string text = spell_bytes(token);
        std::ranges::find(bpe.special, text, &std::pair<std::string, int32_t>::first) != bpe.special.end())
      token.clear();
  const auto id_of = [&](const std::string& text) {
    return std::ranges::find(bpe.special, text, &std::pair<std::string, int32_t>::first)->second;
  };
  base::JsonWriter out;
  out.object([&] {
    out.key("version").value("1.0").key("truncation").null().key("padding").null();
    out.key("added_tokens").list([&] {
      for (const auto& [text, id] : bpe.special) write_special(out, text, id);
    });
    out.key("normalizer").null().key("pre_tokenizer");
    write_words(out, bpe.pattern);
    out.key("post_processor").null();
    out.key("decoder").object([&] {
      out.key("type").value("ByteLevel").key("add_prefix_space").value(false);
      out.key("trim_offsets").value(true).key("use_regex").value(false);
    });
    out.key("model").object([&] {
      if (!bpe.end.empty()) {
        out.key("kintsugi").object([&] {
          out.key("end").value(id_of(bpe.end));
          if (bpe.begin.empty()) return;
          out.key("before").list([&] { out.value(id_of(bpe.begin)); });
          out.key("after").list([] {});
        });
      }
      write_vocabulary(out, bpe);
    });
  });
  return out.text();
}

}  // namespace kintsugi::text

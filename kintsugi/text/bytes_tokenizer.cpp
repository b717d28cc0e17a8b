// tokenizer.json: { "format": "kintsugi-tokenizer", "version": 1, "kind": "bytes", "vocab_size": 257,
//                   "end_of_text": 256 }
#include "kintsugi/text/bytes_tokenizer.h"

#include "kintsugi/base/error.h"
#include "kintsugi/text/own_json.h"

namespace kintsugi::text {
namespace {

constexpr int32_t kEnd = 256;
constexpr int32_t kVocabSize = 257;

class BytesTokenizer final : public Tokenizer {
 public:
  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    ids.resize(before + text.size());
    for (size_t i = 0; i < text.size(); ++i) ids[before + i] = static_cast<uint8_t>(text[i]);
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const int32_t id : ids) {
      if (id < 0 || id >= kVocabSize) {
        throw base::UserError("tokenizer", "id {} is not in the vocabulary of bytes; ids are 0 to {}", id, kEnd);
      }
      if (id == kEnd) {
        text += kOwnEndOfText;
      } else {
        text.push_back(static_cast<char>(id));
      }
    }
    return text;
  }

  int32_t vocab_size() const override { return kVocabSize; }
  std::optional<int32_t> end_of_text() const override { return kEnd; }
  std::string kind() const override { return "bytes"; }
  std::string to_json() const override {
    base::JsonWriter out(1);
    out.object([&] {
      begin_own_json(out, kind());
      out.key("vocab_size").value(kVocabSize).key("end_of_text").value(kEnd);
    });
    return out.text() + "\n";
  }
};

}  // namespace

std::unique_ptr<Tokenizer> make_bytes_tokenizer() {
  return std::make_unique<BytesTokenizer>();
}

std::unique_ptr<Tokenizer> read_bytes_json(const base::Json& document) {
  check_keys(document, {"vocab_size", "end_of_text"});
  check_number(document, "vocab_size", kVocabSize);
  check_number(document, "end_of_text", kEnd);
  return make_bytes_tokenizer();
}

}  // namespace kintsugi::text

// { "vocab": { word: id }, "unk_token": name }: a word is a token or unknown.
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/models/rows.h"
#include "kintsugi/text/vocabulary.h"
#include "kintsugi/text/word_table.h"

namespace kintsugi::text {
namespace {

class WordLevel final : public TokenModel {
 public:
  explicit WordLevel(const base::Json& model)
      : vocabulary_(read_vocabulary(model.at("vocab"))),
        unknown_(vocabulary_.find(std::string(model.at("unk_token").text()))),
        words_(vocabulary_.tokens, vocabulary_.ids.size()) {
    for (const auto& [token, id] : vocabulary_.ids) words_.add(id);
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    const int32_t id = words_.find(word);
    if (id < 0 && unknown_ < 0) refuse_unknown(word);
    ids.push_back(id < 0 ? unknown_ : id);
  }
  void encode_bytes(std::string_view bytes, std::vector<int32_t>& ids) const override {
    if (unknown_ < 0) refuse_unknown(bytes);
    ids.push_back(unknown_);
  }
  std::string_view kind() const override { return "wordlevel"; }
  const std::vector<std::string>& tokens() const override { return vocabulary_.tokens; }

 private:
  Vocabulary vocabulary_;
  int32_t unknown_;
  WordTable words_;
};

}  // namespace

std::unique_ptr<TokenModel> read_word_level(const base::Json& model) {
  return std::make_unique<WordLevel>(model);
}

}  // namespace kintsugi::text

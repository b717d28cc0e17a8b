// { "prefix": "##", "cleanup": true }: a token without the prefix begins a word, preceded by a space except at the
// beginning; the cleanup removes spaces before punctuation and English contractions.
#include <utility>

#include "kintsugi/text/decoders/rows.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/replace_pattern.h"

namespace kintsugi::text {
namespace {

constexpr std::pair<std::string_view, std::string_view> kCleanup[] = {
    {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
    {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

class WordPieceDecoder final : public TokenDecoder {
 public:
  explicit WordPieceDecoder(const base::Json& part)
      : prefix_(part.at("prefix").text()), cleanup_(flag(part, "cleanup", true)) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 && token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else if (i > 0) {
        token.insert(0, 1, ' ');
      }
      if (!cleanup_) continue;
      for (const auto& [from, to] : kCleanup) replace_all(token, from, to);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

}  // namespace

std::unique_ptr<TokenDecoder> read_word_piece_decoder(const base::Json& part) {
  return std::make_unique<WordPieceDecoder>(part);
}

}  // namespace kintsugi::text

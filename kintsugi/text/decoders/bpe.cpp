// { "suffix": "</w>" }: the suffix becomes a space, at the end of the text nothing.
#include "kintsugi/text/decoders/rows.h"
#include "kintsugi/text/replace_pattern.h"

namespace kintsugi::text {
namespace {

class BpeDecoder final : public TokenDecoder {
 public:
  explicit BpeDecoder(const base::Json& suffix) : suffix_(suffix.text()) {
    if (suffix_.empty()) suffix.fail("the suffix of the decoder BPEDecoder is empty");
  }

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

}  // namespace

std::unique_ptr<TokenDecoder> read_bpe_decoder(const base::Json& part) {
  return std::make_unique<BpeDecoder>(part.at("suffix"));
}

}  // namespace kintsugi::text

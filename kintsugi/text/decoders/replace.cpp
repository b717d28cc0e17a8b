#include "kintsugi/text/decoders/rows.h"
#include "kintsugi/text/replace_pattern.h"

namespace kintsugi::text {
namespace {

class ReplaceDecoder final : public TokenDecoder {
 public:
  explicit ReplaceDecoder(const base::Json& part) : replace_(part) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) replace_.apply(token);
  }

 private:
  ReplacePattern replace_;
};

}  // namespace

std::unique_ptr<TokenDecoder> read_replace_decoder(const base::Json& part) {
  return std::make_unique<ReplaceDecoder>(part);
}

}  // namespace kintsugi::text

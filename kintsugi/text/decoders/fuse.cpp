// Joins all tokens into one.
#include "kintsugi/text/decoders/rows.h"

namespace kintsugi::text {
namespace {

class FuseDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, std::move(all));
  }
};

}  // namespace

std::unique_ptr<TokenDecoder> read_fuse_decoder(const base::Json&) {
  return std::make_unique<FuseDecoder>();
}

}  // namespace kintsugi::text

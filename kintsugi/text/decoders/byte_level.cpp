// Converts characters that represent bytes to bytes; a token with any other character is literal text.
#include "kintsugi/text/byte_symbols.h"
#include "kintsugi/text/decoders/rows.h"

namespace kintsugi::text {
namespace {

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string bytes;
      if (read_symbols(token, bytes)) token = std::move(bytes);
    }
  }
};

}  // namespace

std::unique_ptr<TokenDecoder> read_byte_level_decoder(const base::Json&) {
  return std::make_unique<ByteLevelDecoder>();
}

}  // namespace kintsugi::text

// "<0xE2>" becomes a byte. Preserves sequences of bytes that are not valid UTF-8 (Hugging Face writes U+FFFD for each),
// so that nothing is lost.
#include "kintsugi/text/byte_tokens.h"
#include "kintsugi/text/decoders/rows.h"

namespace kintsugi::text {
namespace {

class ByteFallbackDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      if (const auto byte = byte_of_token(token)) token.assign(1, static_cast<char>(*byte));
    }
  }
};

}  // namespace

std::unique_ptr<TokenDecoder> read_byte_fallback_decoder(const base::Json&) {
  return std::make_unique<ByteFallbackDecoder>();
}

}  // namespace kintsugi::text

// { "decoders": [...] }: applied in sequence.
#include "kintsugi/text/decoders/rows.h"

namespace kintsugi::text {
namespace {

class DecoderSequence final : public TokenDecoder {
 public:
  explicit DecoderSequence(const base::Json& list) {
    for (const base::Json& step : list.list()) steps_.push_back(read_token_decoder(step));
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (const auto& step : steps_) step->apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<TokenDecoder>> steps_;
};

}  // namespace

std::unique_ptr<TokenDecoder> read_decoder_sequence(const base::Json& part) {
  return std::make_unique<DecoderSequence>(part.at("decoders"));
}

}  // namespace kintsugi::text

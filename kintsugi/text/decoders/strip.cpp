// { "content": character, "start": n, "stop": m }: removes it from each token, up to n times in front and m behind.
#include "kintsugi/text/decoders/rows.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

class StripDecoder final : public TokenDecoder {
 public:
  explicit StripDecoder(const base::Json& part) : start_(part.at("start").whole()), stop_(part.at("stop").whole()) {
    append_character(one_character(part.at("content")), content_);
  }

  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      size_t front = 0, back = token.size();
      for (int64_t i = 0; i < start_ && token.compare(front, content_.size(), content_) == 0; ++i)
        front += content_.size();
      for (int64_t i = 0; i < stop_ && back >= front + content_.size(); ++i) {
        if (token.compare(back - content_.size(), content_.size(), content_) != 0) break;
        back -= content_.size();
      }
      if (front > 0 || back < token.size()) token = token.substr(front, back - front);
    }
  }

 private:
  std::string content_;
  int64_t start_, stop_;
};

}  // namespace

std::unique_ptr<TokenDecoder> read_strip_decoder(const base::Json& part) {
  return std::make_unique<StripDecoder>(part);
}

}  // namespace kintsugi::text

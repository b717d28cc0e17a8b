// { "replacement": "▁", "prepend_scheme": ... }: the replacement becomes a space; in the first token it is dropped,
// unless the scheme is "never".
#include "kintsugi/text/decoders/rows.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

class MetaspaceDecoder final : public TokenDecoder {
 public:
  explicit MetaspaceDecoder(const base::Json& part) {
    append_character(one_character(part.at("replacement")), mark_);
    const auto scheme = find_part(part, "prepend_scheme");
    drops_ = scheme ? scheme->text() != "never" : flag(part, "add_prefix_space", true);
  }

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view space = i == 0 && drops_ ? "" : " ";
      std::string text;
      const std::string_view token = tokens[i];
      for (size_t done = 0; done < token.size();) {
        const size_t at = std::min(token.find(mark_, done), token.size());
        text += token.substr(done, at - done);
        if (at < token.size()) text += space;
        done = at + mark_.size();
      }
      tokens[i] = std::move(text);
    }
  }

 private:
  std::string mark_;
  bool drops_;
};

}  // namespace

std::unique_ptr<TokenDecoder> read_metaspace_decoder(const base::Json& part) {
  return std::make_unique<MetaspaceDecoder>(part);
}

}  // namespace kintsugi::text

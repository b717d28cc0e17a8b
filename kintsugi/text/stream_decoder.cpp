#include "kintsugi/text/stream_decoder.h"

#include <utility>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, std::span<const int32_t> before) : tokenizer_(&tokenizer) {
  for (const int32_t id : before) add(id);
  held_.clear();
}

// What a token decodes to depends on whether it is the first, and on the previous one: so both are decoded. Keeps all
// ids until there is text.
std::string StreamDecoder::add(int32_t id) {
  before_.push_back(id);
  std::string all = tokenizer_->decode(before_);
  std::string text = std::move(held_) + (all.starts_with(text_before_) ? all.substr(text_before_.size()) : all);
  if (all.empty()) {
    text_before_.clear();
  } else {
    before_.assign(1, id);
    text_before_ = tokenizer_->decode(before_);
  }
  const size_t ready = text.size() - count_unfinished(text);
  held_ = text.substr(ready);
  text.resize(ready);
  return text;
}

std::string StreamDecoder::flush() {
  return std::exchange(held_, {});
}

}  // namespace kintsugi::text

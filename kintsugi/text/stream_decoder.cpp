#include "kintsugi/text/stream_decoder.h"

#include <span>
#include <utility>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {

std::string StreamDecoder::add(int32_t id) {
  std::string text = std::move(held_) + tokenizer_->decode(std::span(&id, 1));
  const size_t ready = text.size() - count_unfinished(text);
  held_ = text.substr(ready);
  text.resize(ready);
  return text;
}

std::string StreamDecoder::flush() {
  return std::exchange(held_, {});
}

}  // namespace kintsugi::text

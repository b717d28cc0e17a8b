#include "kintsugi/data/input_file.h"

#include <algorithm>

namespace kintsugi::data {

InputFile::InputFile(const CorpusFile& file, uint64_t from) : content_(file.content) {
  if (content_) {
    at_ = from;
    return;
  }
  stream_ = open_text(file.spooled ? file.spooled->path() : file.path, file.compression, file.path.string());
  if (from > 0) stream_->skip(from);
}

size_t InputFile::read(size_t count, std::string& text) {
  if (content_) {
    const size_t n = std::min<size_t>(count, content_->size() - at_);
    text.append(*content_, at_, n);
    at_ += n;
    return n;
  }
  const size_t begin = text.size();
  text.resize(begin + count);
  const size_t done = stream_->read(std::span(text).subspan(begin));
  text.resize(begin + done);
  return done;
}

}  // namespace kintsugi::data

#include "kintsugi/data/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kintsugi/base/error.h"

namespace kintsugi::data {

InputFile::InputFile(const CorpusFile& file, uint64_t from) : path_(file.path), content_(file.content), at_(from) {
  if (content_) return;
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw base::UserError("prepare", "cannot open \"{}\": {}", path_.string(), std::strerror(errno));
  if (from > 0 && ::lseek(descriptor_, static_cast<off_t>(from), SEEK_SET) < 0) {
    const int reason = errno;
    ::close(descriptor_);
    throw base::UserError("prepare", "cannot read \"{}\" from byte {} on: {}", path_.string(), from,
                          std::strerror(reason));
  }
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
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
  size_t done = 0;
  while (done < count) {
    const ssize_t n = ::read(descriptor_, text.data() + begin + done, count - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw base::UserError("prepare", "cannot read \"{}\": {}", path_.string(), std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(begin + done);
  return done;
}

}  // namespace kintsugi::data

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::data {
namespace {

class GzipStream : public TextStream {
 public:
  GzipStream(const std::filesystem::path& path, const std::string& name)
      : name_(name), file_(::gzopen(path.c_str(), "rbe")) {
    if (!file_) throw base::UserError("prepare", "cannot open \"{}\": {}", name_, std::strerror(errno));
    ::gzbuffer(file_, 256 << 10);
  }
  ~GzipStream() override { ::gzclose_r(file_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  size_t read(std::span<char> to) override {
    size_t done = 0;
    while (done < to.size()) {
      const auto want = static_cast<unsigned>(std::min<size_t>(to.size() - done, 1 << 30));
      const int n = ::gzread(file_, to.data() + done, want);
      int error = Z_OK;
      const char* what = ::gzerror(file_, &error);
      if (n < 0 || (error != Z_OK && error != Z_STREAM_END))
        throw base::UserError("prepare", "\"{}\" is damaged: {}", name_,
                              error == Z_BUF_ERROR ? "it is truncated"
                              : error == Z_ERRNO   ? std::strerror(errno)
                                                   : what);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  uint64_t consumed() const override { return static_cast<uint64_t>(std::max<z_off_t>(0, ::gzoffset(file_))); }

 private:
  std::string name_;
  gzFile file_;
};

}  // namespace

std::unique_ptr<TextStream> open_gzip(const std::filesystem::path& path, const std::string& name) {
  return std::make_unique<GzipStream>(path, name);
}

}  // namespace kintsugi::data

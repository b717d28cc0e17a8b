#include <zstd.h>

#include <new>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::data {
namespace {

class ZstdStream : public TextStream {
 public:
  explicit ZstdStream(const std::filesystem::path& path)
      : path_(path),
        file_(open_text(path, Compression::none)),
        buffer_(ZSTD_DStreamInSize()),
        stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
  }
  ~ZstdStream() override { ZSTD_freeDStream(stream_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  size_t read(std::span<char> to) override {
    ZSTD_outBuffer out = {to.data(), to.size(), 0};
    while (out.pos < out.size) {
      if (in_.pos == in_.size) {
        in_ = {buffer_.data(), file_->read(buffer_), 0};
        if (in_.size == 0 && whole_) break;
        if (in_.size == 0)
          throw base::UserError("prepare", "\"{}\" is damaged: it ends before its text does", path_.string());
      }
      const size_t left = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_isError(left))
        throw base::UserError("prepare", "\"{}\" is damaged: {}", path_.string(), ZSTD_getErrorName(left));
      whole_ = left == 0;  // at the end of a frame; another may follow
    }
    return out.pos;
  }

  uint64_t consumed() const override { return file_->consumed() - (in_.size - in_.pos); }

 private:
  std::filesystem::path path_;
  std::unique_ptr<TextStream> file_;
  std::vector<char> buffer_;
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool whole_ = false;
};

}  // namespace

std::unique_ptr<TextStream> open_zstd(const std::filesystem::path& path) {
  return std::make_unique<ZstdStream>(path);
}

}  // namespace kintsugi::data

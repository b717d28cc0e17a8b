#include <zstd.h>
#include <zstd_errors.h>

#include <new>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::data {
namespace {

class ZstdStream : public TextStream {
 public:
  ZstdStream(const std::filesystem::path& path, const std::string& name)
      : name_(name),
        file_(open_text(path, Compression::none, name)),
        buffer_(ZSTD_DStreamInSize()),
        stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
    // The largest window the library supports; it allocates what a frame requires.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
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
        if (in_.size == 0) throw base::UserError("prepare", "\"{}\" is damaged: it is truncated", name_);
      }
      const size_t left = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation)
        throw base::UserError("prepare", "\"{}\": cannot allocate the memory of its window", name_);
      if (ZSTD_isError(left)) throw base::UserError("prepare", "\"{}\" is damaged: {}", name_, ZSTD_getErrorName(left));
      whole_ = left == 0;  // at the end of a frame; another may follow
    }
    return out.pos;
  }

  uint64_t consumed() const override { return file_->consumed() - (in_.size - in_.pos); }

 private:
  std::string name_;
  std::unique_ptr<TextStream> file_;
  std::vector<char> buffer_;
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool whole_ = false;
};

}  // namespace

std::unique_ptr<TextStream> open_zstd(const std::filesystem::path& path, const std::string& name) {
  return std::make_unique<ZstdStream>(path, name);
}

}  // namespace kintsugi::data

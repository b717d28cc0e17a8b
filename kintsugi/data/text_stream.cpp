#include "kintsugi/data/text_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/lfs_pointer.h"

namespace kintsugi::data {
namespace {

using namespace std::string_view_literals;

struct Format {
  std::string_view begins, name;
};
constexpr Format kFormats[] = {{"\xFD"
                                "7zXZ\0"sv,
                                "compressed by xz"},
                               {"BZh"sv, "compressed by bzip2"},
                               {"\x04\x22\x4D\x18"sv, "compressed by lz4"},
                               {"PK\x03\x04"sv, "a zip archive"},
                               {"7z\xBC\xAF\x27\x1C"sv, "a 7z archive"},
                               {"%PDF-"sv, "a PDF"},
                               {"\xFF\xFE"sv, "UTF-16"},
                               {"\xFE\xFF"sv, "UTF-16"}};

// Skips leading skippable frames of zstd or lz4, as far as `head` contains them.
std::string_view behind_skippable(std::string_view head) {
  constexpr size_t kHead = 8;  // magic number and size
  while (head.size() >= kHead && (head[0] & 0xF0) == 0x50 && head.substr(1, 3) == "\x2A\x4D\x18"sv) {
    uint32_t size = 0;
    std::memcpy(&size, head.data() + 4, sizeof size);
    head.remove_prefix(std::min<uint64_t>(head.size(), uint64_t{kHead} + size));
  }
  return head;
}

class PlainStream : public TextStream {
 public:
  PlainStream(const std::filesystem::path& path, const std::string& name)
      : name_(name), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw base::UserError("prepare", "cannot open \"{}\": {}", name_, std::strerror(errno));
  }
  ~PlainStream() override { ::close(descriptor_); }
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;

  size_t read(std::span<char> to) override {
    size_t done = 0;
    while (done < to.size()) {
      const ssize_t n = ::read(descriptor_, to.data() + done, to.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw base::UserError("prepare", "cannot read \"{}\": {}", name_, std::strerror(errno));
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    at_ += done;
    return done;
  }

  void skip(uint64_t count) override {
    if (::lseek(descriptor_, static_cast<off_t>(count), SEEK_CUR) < 0)
      throw base::UserError("prepare", "cannot read \"{}\" from byte {} on: {}", name_, count, std::strerror(errno));
    at_ += count;
  }

  uint64_t consumed() const override { return at_; }

 private:
  std::string name_;
  int descriptor_;
  uint64_t at_ = 0;
};

}  // namespace

void TextStream::skip(uint64_t count) {
  std::vector<char> passed(std::min<uint64_t>(count, 1 << 20));
  while (count > 0) {
    const size_t n = read(std::span(passed).first(std::min<uint64_t>(count, passed.size())));
    if (n == 0) return;
    count -= n;
  }
}

Compression compression_of(std::string_view head) {
  if (head.starts_with("\x1F\x8B"sv)) return Compression::gzip;
  const std::string_view rest = behind_skippable(head);
  // Skippable frames longer than `head`: zstd, whose tools write them.
  if (rest.starts_with("\x28\xB5\x2F\xFD"sv) || (rest.empty() && !head.empty())) return Compression::zstd;
  return Compression::none;
}

std::string_view known_format(std::string_view head) {
  if (base::is_lfs_pointer(head)) return base::kLfsAdvice;
  head = behind_skippable(head);
  for (const Format& format : kFormats)
    if (head.starts_with(format.begins)) return format.name;
  return "";
}

std::unique_ptr<TextStream> open_text(const std::filesystem::path& path, Compression compression,
                                      const std::string& name) {
  switch (compression) {
    case Compression::none:
      return std::make_unique<PlainStream>(path, name);
    case Compression::gzip:
      return open_gzip(path, name);
    case Compression::zstd:
      return open_zstd(path, name);
  }
  throw base::InternalError("prepare", "an unknown compression");
}

}  // namespace kintsugi::data

#include "kintsugi/report/followed_metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::report {
namespace {

// A file that is reopened each time: a shared file system may only then show what another machine has written.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (file_ < 0 && errno != ENOENT) fail();
  }
  ~OpenFile() {
    if (file_ >= 0) ::close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool is_there() const { return file_ >= 0; }
  struct stat status() const {
    struct stat status = {};
    if (::fstat(file_, &status) != 0) fail();
    return status;
  }
  // Returns fewer bytes at the end of the file.
  size_t read(char* to, size_t bytes, int64_t from) const {
    const ssize_t got = ::pread(file_, to, bytes, from);
    if (got < 0) fail();
    return static_cast<size_t>(got);
  }

 private:
  [[noreturn]] void fail() const {
    throw base::UserError("metrics", "cannot read \"{}\": {}", path_.string(), std::strerror(errno));
  }

  std::filesystem::path path_;
  int file_;
};

}  // namespace

void FollowedMetrics::begin_anew() {
  reader_ = std::make_unique<MetricsReader>();
  offset_ = 0;
}

bool FollowedMetrics::read() {
  base::require_run_file("metrics", path_);
  const OpenFile file(path_);
  exists_ = file.is_there();
  if (!exists_) return false;
  const struct stat status = file.status();
  const bool other = status.st_dev != device_ || status.st_ino != inode_ || status.st_size < offset_;
  const bool anew = other && offset_ > 0;
  if (anew) begin_anew();
  device_ = status.st_dev;
  inode_ = status.st_ino;
  const bool expected = offset_ == 0 || reader_->went_back();  // a step that goes back is then part of the file
  std::string piece(1 << 20, '\0');
  bool any = anew;
  while (const size_t got = file.read(piece.data(), piece.size(), offset_)) {
    reader_->add(std::string_view(piece).substr(0, got));
    offset_ += static_cast<int64_t>(got);
    any = true;
  }
  // Lines were replaced within the same file: what was read of them is obsolete.
  if (!expected && reader_->went_back()) {
    begin_anew();
    read();
  }
  return any;
}

}  // namespace kintsugi::report

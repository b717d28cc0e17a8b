#include "kintsugi/data/spooled_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"

namespace kintsugi::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSpoolBytes = 1 << 20;
constexpr int kPollMilliseconds = 200;

// The nearest existing parent of the output.
fs::path existing_folder(const fs::path& output) {
  std::error_code error;
  fs::path folder = fs::absolute(output, error);
  while (!fs::is_directory(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

int open_without_name(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)) return file;
  // For file systems without anonymous files.
  std::string name = (folder / ".part-input-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

class Source {
 public:
  explicit Source(const fs::path& path) {
    if (path == kStandardInput) return;
    file_ = owned_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) throw base::UserError("prepare", "cannot open \"{}\": {}", path.string(), std::strerror(errno));
  }
  ~Source() {
    if (owned_ >= 0) ::close(owned_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  int file() const { return file_; }

 private:
  int file_ = STDIN_FILENO, owned_ = -1;
};

}  // namespace

SpooledInput::SpooledInput(const fs::path& source, const fs::path& output, const std::atomic<bool>* stop) {
  const std::string name = source == kStandardInput ? "standard input" : source.string();
  const fs::path folder = existing_folder(output);
  descriptor_ = open_without_name(folder);
  if (descriptor_ < 0)
    throw base::UserError("prepare", "\"{}\" can be read once, and no copy can be kept in \"{}\": {}", name,
                          folder.string(), std::strerror(errno));
  path_ = fmt::format("/proc/self/fd/{}", descriptor_);
  try {
    copy(Source(source).file(), name, stop);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SpooledInput::~SpooledInput() {
  ::close(descriptor_);
}

void SpooledInput::copy(int from, const std::string& name, const std::atomic<bool>* stop) {
  std::vector<char> block(kSpoolBytes);
  while (true) {
    pollfd waits = {.fd = from, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waits, 1, kPollMilliseconds);
    if (stop && stop->load())
      throw base::UserError("prepare", "interrupted; nothing was written, and the same command starts over");
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = ::read(from, block.data(), block.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) throw base::UserError("prepare", "cannot read \"{}\": {}", name, std::strerror(errno));
    if (n == 0) return;
    for (ssize_t done = 0; done < n;) {
      const ssize_t written = ::write(descriptor_, block.data() + done, static_cast<size_t>(n - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw base::UserError("prepare", "cannot keep a copy of \"{}\": {}", name, std::strerror(errno));
      done += written;
    }
    bytes_ += static_cast<uint64_t>(n);
  }
}

}  // namespace kintsugi::data

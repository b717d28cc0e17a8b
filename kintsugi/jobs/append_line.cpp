#include "kintsugi/jobs/append_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kintsugi/base/error.h"

namespace kintsugi::jobs {

void append_line(const std::filesystem::path& path, const std::string& line) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const std::string text = line + "\n";
  const bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!written) throw base::UserError("launch", "\"{}\" cannot be written: {}", path.string(), std::strerror(error));
}

}  // namespace kintsugi::jobs

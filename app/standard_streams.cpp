#include "app/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "kintsugi/base/error.h"

namespace kintsugi::app {
namespace {

[[noreturn]] void fail(int reason) {
  throw base::UserError("output", "{}", not_printed(reason != 0 ? std::strerror(reason) : "a part of it is lost"));
}

}  // namespace

std::string not_printed(std::string_view reason) {
  return fmt::format("cannot write to stdout: {}", reason);
}

void open_missing_streams() {
  constexpr std::array<std::pair<int, int>, 3> kStreams = {
      {{STDIN_FILENO, O_WRONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_RDWR}}};
  for (const auto& [descriptor, flags] : kStreams) {
    // open returns the lowest free descriptor, which is this one: those below are open.
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
      const int opened = ::open("/dev/null", flags);
      (void)opened;
    }
  }
}

void print_at_once(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail(errno);
  require_printed();
}

void print_model_text(std::string_view text) {
  print_at_once(::isatty(STDOUT_FILENO) == 1 ? base::printable(text) : std::string(text));
}

void write_text(std::FILE* to, std::string_view text) {
  const std::string shown = base::printable(text);
  errno = 0;
  if (std::fwrite(shown.data(), 1, shown.size(), to) != shown.size() && to == stdout) fail(errno);
}

void write_warning(std::string_view text) {
  write_err("warning: {}\n", base::one_line(text, std::string_view::npos));
}

void require_printed() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail(errno);
}

void require_printed(std::ostream& out) {
  if (out.good()) {
    errno = 0;
    out.flush();
  }
  if (!out.good()) fail(errno);  // of the flush, or of the write before it
  require_printed();
}

}  // namespace kintsugi::app

#include "app/watch_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace kintsugi::app {
namespace {

// xterm, "Control Sequences": the alternate screen, and a hidden cursor.
constexpr const char* kBegin = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr const char* kEnd = "\x1b[?25h\x1b[?1049l";

// The part of a larger terminal that is used.
constexpr int kMostColumns = 1000, kMostRows = 400;

int size_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  if (!text) return otherwise;
  int size = 0;
  const std::string_view digits = text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  return error == std::errc() && end == digits.data() + digits.size() && size > 0 && size < 10'000 ? size : otherwise;
}

}  // namespace

ScreenSize screen_size() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0)
    return {.columns = std::min<int>(size.ws_col, kMostColumns), .rows = std::min<int>(size.ws_row, kMostRows)};
  return {.columns = std::min(size_from("COLUMNS", 80), kMostColumns),
          .rows = std::min(size_from("LINES", 24), kMostRows)};
}

WatchScreen::WatchScreen() {
  keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (keys_) {
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    now.c_cc[VSUSP] = _POSIX_VDISABLE;  // stopped, it would leave the terminal as it is
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  send(kBegin);
}

WatchScreen::~WatchScreen() {
  send(kEnd);
  if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void WatchScreen::send(const std::string& text) {
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t sent = ::write(STDOUT_FILENO, left.data(), left.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // the terminal is gone: the next key, or a signal, ends it
    left.remove_prefix(static_cast<size_t>(sent));
  }
}

void WatchScreen::draw(const std::vector<std::string>& lines, int columns, int rows) {
  std::string text;
  if (columns != columns_ || rows != rows_) {
    text = "\x1b[2J";
    shown_.clear();
    columns_ = columns;
    rows_ = rows;
  }
  shown_.resize(static_cast<size_t>(rows));
  for (size_t row = 0; row < shown_.size(); ++row) {
    const std::string line = row < lines.size() ? lines[row] : "";
    if (line == shown_[row]) continue;
    text += "\x1b[" + std::to_string(row + 1) + ";1H\x1b[2K" + line;
    shown_[row] = line;
  }
  send(text);
}

char WatchScreen::key(double seconds) {
  pollfd stdin_ready = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&stdin_ready, keys_ ? 1 : 0, static_cast<int>(1000 * seconds)) <= 0) return 0;
  char key = 0;
  if (::read(STDIN_FILENO, &key, 1) == 1) return key;
  keys_ = keys_ && (stdin_ready.revents & POLLHUP) == 0;  // gone
  return 0;
}

}  // namespace kintsugi::app

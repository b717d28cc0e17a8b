#include "app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"

namespace kintsugi::app {
namespace {

// "14:05:09"
std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  ::localtime_r(&now, &local);
  char text[16] = {};
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string_view fit_columns(std::string_view text, int columns) {
  size_t end = 0;
  for (int column = 0; column < columns && end < text.size(); ++column)
    end += std::max<size_t>(1, base::utf8_length(text.substr(end)));
  return text.substr(0, end);
}

std::string progress_bar(double share, int columns) {
  const int inner = std::max(0, columns - 2);
  if (!(share > 0)) share = 0;  // NaN too
  const int full = static_cast<int>(std::lround(std::min(share, 1.0) * inner));
  std::string bar(inner, ' ');
  std::fill_n(bar.begin(), full, '=');
  if (full > 0 && full < inner) bar[full - 1] = '>';
  return "[" + bar + "]";
}

ProgressLine::ProgressLine(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.seconds) options_.seconds = steady_seconds;
  if (!options_.time) options_.time = time_of_day;
  begun_ = options_.seconds();
  terminal_ = options_.terminal.value_or(::isatty(::fileno(options_.file)) == 1);
}

ProgressLine::~ProgressLine() {
  base::if_memory_lasts([this] { finish(); });
}

int ProgressLine::width() const {
  if (options_.width) return *options_.width;
  struct winsize size = {};
  const bool known = ::ioctl(::fileno(options_.file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  constexpr int kMost = 1000;  // columns that a line uses
  return known ? std::min<int>(size.ws_col, kMost) : 80;
}

void ProgressLine::draw(std::string_view text) {
  if (terminal_) {
    // The last column stays free: some terminals wrap when it is written. ESC [K clears the rest of the previous line.
    const std::string_view shown = fit_columns(text, columns());
    std::fprintf(options_.file, "\r%.*s\x1b[K", static_cast<int>(shown.size()), shown.data());
    open_ = true;
  } else {
    std::fprintf(options_.file, "%s %.*s\n", options_.time().c_str(), static_cast<int>(text.size()), text.data());
  }
  std::fflush(options_.file);
  shown_ = true;
}

void ProgressLine::end_line() {
  if (!open_) return;
  std::fputc('\n', options_.file);
  std::fflush(options_.file);
  open_ = false;
}

void ProgressLine::update(std::string_view text, bool important) {
  last_ = base::one_line(text, 2000);
  shown_ = false;
  const double now = options_.seconds();
  if (now - begun_ < options_.quiet_seconds) return;
  if (!important && now - last_time_ < (terminal_ ? options_.refresh_seconds : options_.plain_seconds)) return;
  last_time_ = now;
  draw(last_);
  if (important) end_line();
}

void ProgressLine::print(std::string_view line) {
  if (open_) std::fputs("\r\x1b[K", options_.file);
  const bool again = open_;
  open_ = false;
  std::fputs((base::printable(line) + "\n").c_str(), options_.file);
  std::fflush(options_.file);
  if (again) draw(last_);
}

void ProgressLine::clear() {
  if (open_) std::fputs("\r\x1b[K", options_.file);
  std::fflush(options_.file);
  open_ = false;
  shown_ = true;
}

void ProgressLine::finish() {
  if (!shown_) draw(last_);
  end_line();
}

}  // namespace kintsugi::app

#include "kintsugi/data/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "kintsugi/base/format.h"

namespace kintsugi::data {
namespace {

constexpr int kWidestBar = 30;
constexpr double kFirst = 2.0, kOften = 5.0;  // seconds, without a terminal

double now_in_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int columns_of(std::FILE* file) {
  struct winsize size = {};
  return ::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? std::min<int>(size.ws_col, 1000) : 80;
}

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  ::localtime_r(&now, &local);
  return fmt::format("{:02}:{:02}:{:02} ", local.tm_hour, local.tm_min, local.tm_sec);
}

// "1.2 of 3.4 MB, 6.7 MB/s"
std::string amounts(ProgressUnit unit, double done, double total, double rate) {
  if (unit == ProgressUnit::merges) return fmt::format("{:.0f} of {:.0f} merges, {:.0f}/s", done, total, rate);
  const bool giga = total >= 1e9;
  const double size = giga ? 1e9 : 1e6;
  return fmt::format("{:.1f} of {:.1f} {}, {:.1f} MB/s", done / size, total / size, giga ? "GB" : "MB", rate / 1e6);
}

}  // namespace

std::string progress_text(const ProgressState& s, bool bar, int columns) {
  const auto done = static_cast<double>(s.done), total = static_cast<double>(std::max(s.total, s.done));
  const double rate = s.seconds > 0 ? done / s.seconds : 0.0;
  const double share = total > 0 ? done / total : 1.0;
  const std::string time = s.last     ? fmt::format("in {}", base::format_duration(s.seconds))
                           : rate > 0 ? base::format_duration((total - done) / rate) + " left"
                                      : base::format_duration(s.seconds);
  const std::string numbers = fmt::format("{}, {}", amounts(s.unit, done, total, rate), time);
  if (!bar) return fmt::format("{}: {:.0f} %, {}", s.what, share * 100, numbers);
  const int left = columns - static_cast<int>(s.what.size() + numbers.size()) - 4;  // spaces and brackets
  if (left < 3) return fmt::format("{} {}", s.what, numbers).substr(0, static_cast<size_t>(columns));
  const auto width = static_cast<size_t>(std::min(left, kWidestBar));
  const auto full = static_cast<size_t>(share * static_cast<double>(width));
  return fmt::format("{} [{}{}] {}", s.what, std::string(full, '#'), std::string(width - full, '.'), numbers);
}

Progress::Progress(std::FILE* to, std::string what, uint64_t total, ProgressUnit unit)
    : to_(to), what_(std::move(what)), total_(total), unit_(unit), begun_(now_in_seconds()) {
  if (!to_) return;
  terminal_ = ::isatty(::fileno(to_)) == 1;
  next_ = terminal_ ? 0.2 : kFirst;
}

Progress::~Progress() {
  if (open_) std::fputc('\n', to_);
}

double Progress::seconds() const {
  return now_in_seconds() - begun_;
}

void Progress::show(uint64_t done) {
  if (!to_ || seconds() < next_) return;
  next_ = seconds() + (terminal_ ? 0.1 : kOften);
  print(done, false);
}

void Progress::finish(uint64_t done) {
  if (!to_) return;
  print(done, true);
  if (open_) std::fputc('\n', to_);
  open_ = false;
  std::fflush(to_);
}

void Progress::print(uint64_t done, bool last) {
  const ProgressState state = {
      .what = what_, .unit = unit_, .done = done, .total = total_, .seconds = seconds(), .last = last};
  if (terminal_) {
    fmt::print(to_, "\r\x1b[K{}", progress_text(state, true, columns_of(to_) - 1));
    open_ = true;
  } else {
    fmt::print(to_, "{}{}\n", clock_text(), progress_text(state, false, 0));
  }
  std::fflush(to_);
}

}  // namespace kintsugi::data

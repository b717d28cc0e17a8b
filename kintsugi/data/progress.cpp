#include "kintsugi/data/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "kintsugi/base/format.h"

namespace kintsugi::data {
namespace {

constexpr double kMegabyte = 1e6;
constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress(std::FILE* to, std::string what, uint64_t total_bytes)
    : to_(to), what_(std::move(what)), total_(total_bytes), begun_(std::chrono::steady_clock::now()) {
  if (!to_) return;
  terminal_ = ::isatty(::fileno(to_)) == 1;
  next_ = terminal_ ? 0.2 : 10.0;
}

Progress::~Progress() {
  if (open_) std::fputc('\n', to_);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

void Progress::show(uint64_t done_bytes) {
  if (!to_ || seconds() < next_) return;
  next_ = seconds() + (terminal_ ? 0.1 : 10.0);
  print(done_bytes, false);
}

void Progress::finish(uint64_t done_bytes) {
  if (!to_) return;
  print(done_bytes, true);
  if (open_) std::fputc('\n', to_);
  open_ = false;
  std::fflush(to_);
}

void Progress::print(uint64_t done_bytes, bool last) {
  const double elapsed = seconds();
  const double done = static_cast<double>(done_bytes);
  const double rate = elapsed > 0 ? done / elapsed : 0.0;
  const double share = total_ > 0 ? std::min(1.0, done / static_cast<double>(total_)) : 1.0;
  const double left = rate > 0 ? std::max(0.0, static_cast<double>(total_) - done) / rate : 0.0;
  const std::string time =
      last ? fmt::format("in {}", base::format_duration(elapsed)) : fmt::format("{} left", base::format_duration(left));
  const std::string numbers =
      fmt::format("{:.1f} of {:.1f} MB, {:.1f} MB/s, {}", done / kMegabyte,
                  static_cast<double>(std::max(total_, done_bytes)) / kMegabyte, rate / kMegabyte, time);
  if (terminal_) {
    const auto full = static_cast<size_t>(share * kBarWidth);
    const std::string bar = std::string(full, '#') + std::string(kBarWidth - full, '.');
    fmt::print(to_, "\r\x1b[K{} [{}] {}", what_, bar, numbers);
    open_ = true;
  } else {
    fmt::print(to_, "{}: {:.0f} %, {}\n", what_, share * 100, numbers);
  }
  std::fflush(to_);
}

}  // namespace kintsugi::data

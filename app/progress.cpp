#include "app/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/base/start_thread.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::app {
namespace {

constexpr int kUnlimited = 1000;  // columns of a line that is no terminal's

bool is_first_process() {
  const auto launched = launch::launched();
  return !launched || launched->rank == 0;
}

}  // namespace

const ProgressOptions Progress::kOptions = {.quiet_seconds = 1.5};

void Rate::add(double seconds, double done) {
  if (!seconds_) {
    first_ = seconds;
  } else if (seconds > *seconds_) {
    // Time constant of the smoothing: the longer the work takes, the steadier the reported rate.
    const double memory = 15 + (seconds - first_) / 10;
    const double keep = std::exp(-(seconds - *seconds_) / memory);
    time_ = time_ * keep + (seconds - *seconds_);
    work_ = work_ * keep + (done - *done_);
  }
  seconds_ = seconds;
  done_ = done;
}

std::optional<double> Rate::per_second() const {
  if (!(time_ > 0) || !(work_ > 0)) return std::nullopt;
  return work_ / time_;
}

double Rate::late(double seconds) const {
  const auto speed = per_second();
  return speed ? std::max(0.0, seconds - *seconds_) - 1 / *speed : 0;
}

std::optional<double> Rate::per_second(double seconds) const {
  const double late_by = late(seconds);
  if (late_by <= 0) return per_second();
  Rate slower = *this;
  slower.add(*seconds_ + late_by, *done_);
  return slower.per_second();
}

std::optional<double> Rate::seconds_left(double seconds, double left) const {
  const auto speed = per_second();
  if (!speed) return std::nullopt;
  const double each = 1 / *speed, late_by = late(seconds);
  if (late_by <= 0 || left < 1) return std::max(0.0, left * each - (late_by + each));
  return late_by + (left - 1) / *per_second(seconds);  // it may well take as long again
}

std::string fit_parts(std::vector<LinePart> parts, int columns) {
  std::erase_if(parts, [](const LinePart& p) { return p.text.empty(); });
  const auto joined = [&] {
    std::string line;
    for (const LinePart& p : parts) line += (line.empty() ? "" : "  ") + p.text;
    return line;
  };
  std::string line = joined();
  while (parts.size() > 1 && fit_columns(line, columns).size() < line.size()) {
    const auto least = std::ranges::min_element(parts, {}, &LinePart::weight);
    if (least->brief.empty()) {
      parts.erase(least);
    } else {
      for (LinePart& p : parts)
        if (!p.brief.empty()) p.text = std::exchange(p.brief, {});
    }
    line = joined();
  }
  return line;
}

std::string time_left(const Rate& rate, double left) {
  const auto speed = rate.per_second();
  return speed ? base::format_duration(left / *speed) + " left" : "";
}

Progress::Progress(std::string what, ProgressOptions options) : options_(std::move(options)), what_(std::move(what)) {
  if (!options_.seconds) options_.seconds = steady_seconds;
  begun_ = options_.seconds();
  if (!is_first_process()) return;
  line_.emplace(options_);
  try {
    thread_ = base::start_thread([this] { tick(); });
  } catch (const base::UserError&) {  // the work may still be done, untold
  }
}

Progress::~Progress() {
  finish();
}

void Progress::count(int64_t done, int64_t all, std::string_view unit) {
  const std::lock_guard lock(mutex_);
  if (unit != unit_ || done < done_) rate_ = {};
  done_ = done;
  all_ = all;
  unit_ = unit;
  now_.clear();
  rate_.add(options_.seconds(), static_cast<double>(done));
}

void Progress::tell(std::string now) {
  const std::lock_guard lock(mutex_);
  now_ = std::move(now);
  all_ = 0;
}

void Progress::print(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (line_) line_->print(line);
}

void Progress::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (line_) line_->clear();
}

void Progress::tick() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return ended_; }))
    base::if_memory_lasts([this] { line_->update(text()); });
}

std::string Progress::text() {
  const int columns = line_->terminal() ? line_->columns() : kUnlimited;
  const std::string elapsed = base::format_duration(options_.seconds() - begun_);
  if (all_ <= 0) return fit_parts({{what_ + (now_.empty() ? "" : ": " + now_), 2}, {elapsed, 1}}, columns);
  const double share = static_cast<double>(done_) / static_cast<double>(all_);
  const double now = options_.seconds();
  const auto speed = rate_.per_second(now), left = rate_.seconds_left(now, static_cast<double>(all_ - done_));
  return fit_parts({{what_, 5},
                    {line_->terminal() ? progress_bar(share, 16) : "", 2},
                    {fmt::format("{}/{} {}", done_, all_, unit_), 6},
                    {speed ? fmt::format("{:.{}f} {}/s", *speed, *speed < 10 ? 1 : 0, unit_) : "", 3},
                    {"after " + elapsed, 1},
                    {left ? base::format_duration(*left) + " left" : "", 4}},
                   columns);
}

}  // namespace kintsugi::app

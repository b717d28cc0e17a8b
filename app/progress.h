// Progress of long operations, for every verb.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/terminal.h"

namespace kintsugi::app {

// A smoothed rate: older work counts less. Times in seconds of any monotonic clock.
class Rate {
 public:
  void add(double seconds, double done);     // of the clock, and of all work so far
  std::optional<double> per_second() const;  // none: nothing is known yet
  // At a time of the clock: decreases while the next unit takes longer than the previous ones.
  std::optional<double> per_second(double seconds) const;
  // Seconds until `left` more is done, at a time of the clock: counts down while the next unit is in progress, and
  // grows if that takes longer than the previous ones.
  std::optional<double> seconds_left(double seconds, double left) const;

 private:
  double late(double seconds) const;  // by how much the next is late; not above 0: it is not

  std::optional<double> seconds_, done_;  // last
  double time_ = 0, work_ = 0;            // each part less the older it is
  double first_ = 0;
};

// A part of a line. If not all fit, those with the smallest weight are left out. Before one with a brief text is left
// out, all are shortened.
struct LinePart {
  std::string text;
  int weight = 0;
  std::string brief = {};
};
// The parts separated by two spaces, in at most `columns`.
std::string fit_parts(std::vector<LinePart> parts, int columns);

// "9s left"; "" if unknown.
std::string time_left(const Rate& rate, double left);

// A progress line on stderr: nothing at first, since most work is short; then, on a terminal, a bar or the current
// activity, cleared at the end, and elsewhere a line from time to time. Silent on ranks as processes, except the first.
// Thread-safe.
class Progress {
 public:
  explicit Progress(std::string what, ProgressOptions options = kOptions);
  ~Progress();  // finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Countable work: "evaluating [==>   ] 12/40 samples".
  void count(int64_t done, int64_t all, std::string_view unit);
  // Other work: "compiling: stage 3 of 16".
  void tell(std::string now);
  // A separate line on stderr, above.
  void print(std::string_view line);
  void finish();

 private:
  static const ProgressOptions kOptions;

  void tick();
  std::string text();  // with the lock

  std::mutex mutex_;
  std::condition_variable changed_;
  ProgressOptions options_;
  std::optional<ProgressLine> line_;  // none: silent
  std::string what_, now_, unit_;
  int64_t done_ = 0, all_ = 0;
  double begun_ = 0;
  Rate rate_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::app

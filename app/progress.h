// The progress of work that takes a while, for every verb.
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

// How fast work is done, smoothed: what was done long ago counts less. Seconds of any clock that does not go back.
class Rate {
 public:
  void add(double seconds, double done);     // of the clock, and of all work so far
  std::optional<double> per_second() const;  // none: nothing is known yet
  // At a time of the clock: where the next takes longer than those before, it becomes less.
  std::optional<double> per_second(double seconds) const;
  // Until `left` more is done, at a time of the clock: it counts down while the next is under way, and where that takes
  // longer than those before, so does the rest.
  std::optional<double> seconds_left(double seconds, double left) const;

 private:
  double late(double seconds) const;  // by how much the next is late; not above 0: it is not

  std::optional<double> seconds_, done_;  // last
  double time_ = 0, work_ = 0;            // each part less the older it is
  double first_ = 0;
};

// A part of a line. Of those that do not fit, the ones with the smallest weight are left out. Before one with a brief
// text is, all of them become brief.
struct LinePart {
  std::string text;
  int weight = 0;
  std::string brief = {};
};
// The parts with two spaces between them, in at most `columns`.
std::string fit_parts(std::vector<LinePart> parts, int columns);

// "9s left"; "" where nothing is known.
std::string time_left(const Rate& rate, double left);

// A line on stderr that moves while work is under way: nothing in the first moments, since most work is short; then,
// on a terminal, a bar or what is done now, which is taken away at the end, and elsewhere a line from time to time.
// Silent on ranks that are processes, but for the first. Functions may be called by any thread.
class Progress {
 public:
  explicit Progress(std::string what, ProgressOptions options = kOptions);
  ~Progress();  // finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What can be counted: "evaluating [==>   ] 12/40 samples".
  void count(int64_t done, int64_t all, std::string_view unit);
  // What cannot: "compiling: stage 3 of 16".
  void tell(std::string now);
  // A line of its own on stderr, above.
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

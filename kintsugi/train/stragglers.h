// Finds ranks that compute more slowly than their peers: all others wait for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/train/observer.h"
#include "kintsugi/train/rank.h"

namespace kintsugi::train {

// The file in a run's folder with a line per current straggler; absent if there is none. Only read for display.
inline constexpr const char* kStragglerFile = "stragglers.txt";

// Time of a rank per step, without what it waited for others.
struct BusyRank {
  double seconds = 0;
  int stage = 0;  // ranks of different pipeline stages do different work, and are not compared
};

struct SlowRank {
  int rank = -1;
  double seconds = 0, median = 0;  // of its stage
};

// The ranks that take 2.5 times the median of their stage, if the difference is a fifth of `step`, the time of a step
// with its waits.
std::vector<SlowRank> slow_ranks(std::span<const BusyRank> ranks, double step);
// "rank 2 on n3 is a straggler: its step takes 312 ms without waiting, 5.2 times the median of 60.0 ms"
std::string in_words(const SlowRank& slow, std::string_view host);

// A rank that is slow once may have been interrupted, and on a busy machine another may be next: it is a straggler once
// three comparisons more find it slow than do not, until three more find it not slow.
class StragglerWatch {
 public:
  // Adds a comparison. Returns the ranks that it makes stragglers, and those that are stragglers no longer, with
  // `median` 0.
  std::vector<SlowRank> add(std::span<const SlowRank> slow);
  bool undecided() const;                    // further comparisons are to confirm one
  std::vector<SlowRank> stragglers() const;  // as last compared

 private:
  struct Seen {
    SlowRank last;
    int against = 0;  // comparisons that contradict `straggler`, less those that confirm it; at least 0
    bool straggler = false;
  };
  std::map<int, Seen> seen_;  // by rank
};

// Over the steps of a run.
class Stragglers {
 public:
  // `folder`, `observer`: on rank 0 only; null on the others.
  Stragglers(const Rank& rank, const std::filesystem::path* folder, Observer* observer);

  bool enabled() const { return rank_.world.size() > 1 && rank_.settings().launch.straggler_seconds > 0; }
  // Adds a step of this rank, in seconds: `busy` without what it waited for others.
  void add(double busy, double whole) { busy_ += busy, whole_ += whole, ++steps_; }
  // On rank 0: whether the steps added since the last comparison suffice for another.
  bool due() const;
  // Collective. Compares the steps added since the last call, and reports stragglers on rank 0.
  void compare(int64_t steps_done);
  // On rank 0: whether the next comparison is to confirm a straggler.
  bool undecided() const { return watch_.undecided(); }

 private:
  using Clock = std::chrono::steady_clock;

  void report(std::span<const SlowRank> changed, int64_t steps_done);
  void write() const;

  const Rank& rank_;
  const std::filesystem::path* folder_;
  Observer* observer_;
  std::vector<std::string> hosts_;
  StragglerWatch watch_;
  std::map<int, int64_t> since_;  // step, of each straggler
  double busy_ = 0, whole_ = 0;
  int64_t steps_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace kintsugi::train

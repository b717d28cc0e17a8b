// Finds ranks that compute more slowly than their peers: all others wait for them.
#pragma once

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/train/rank.h"

namespace kintsugi::train {

// Time of a rank in a step, without what it waited for others.
struct BusyRank {
  double seconds = 0;
  int stage = 0;  // ranks of different pipeline stages do different work, and are not compared
  std::string host;
};

// The rank that exceeds the median of its stage by the largest factor.
struct Slowest {
  int rank = -1;
  double seconds = 0, median = 0;

  // Twice as slow as the median, by at least 10 ms.
  bool straggles() const { return rank >= 0 && seconds >= 2 * median && seconds - median >= 0.01; }
};
Slowest slowest_of(std::span<const BusyRank> ranks);
// "rank 2 on n3 is a straggler: its step takes 312 ms without waiting, 5.2 times the median of 60 ms"
std::string in_words(const Slowest& slowest, std::string_view host);

// A rank that is slow in a single step may have been interrupted, and on a busy machine another may be: it is confirmed
// when it straggles in two of three measurements, of which the first finds any straggler.
class Suspicion {
 public:
  // Adds a measurement; whether its straggler is confirmed.
  bool confirms(const Slowest& slowest);
  bool open() const { return left_ > 0; }  // further measurements are to confirm one

 private:
  std::map<int, int> found_;  // times that each rank straggled
  int left_ = 0;
};

// Over the measured steps of a run.
class Stragglers {
 public:
  explicit Stragglers(const Rank& rank) : rank_(rank) {}

  // Collective. `seconds`: of this rank in one step, without what it waited for others. On rank 0 the line about a
  // straggler that was not named in the last ten minutes, else "".
  std::string compare(double seconds);
  // On rank 0: whether the last measurement found one that the next is to confirm.
  bool suspects() const { return suspicion_.open(); }

 private:
  using Clock = std::chrono::steady_clock;

  const Rank& rank_;
  std::vector<std::string> hosts_;
  Suspicion suspicion_;
  int named_ = -1;
  Clock::time_point when_ = {};  // it was named
};

}  // namespace kintsugi::train

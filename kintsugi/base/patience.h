// Tracks how long a rank has waited for others, against a time limit.
#pragma once

#include <algorithm>
#include <chrono>

namespace kintsugi::base {

// Time in which this process itself was stopped (SIGSTOP, a suspended job) does not count, since the others may have
// been stopped with it. A waiter must therefore call is_over() at least once per kSlice.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSlice{250};

  explicit Patience(std::chrono::milliseconds limit) : limit_(limit), last_(Clock::now()) {}

  bool is_over() {
    const Clock::time_point now = Clock::now();
    const Clock::duration gap = std::max<Clock::duration>(now - last_, Clock::duration::zero()),
                          counted = std::min<Clock::duration>(gap, 2 * kSlice);
    last_ = now;
    waited_ += counted;
    stood_still_ += gap - counted;
    return waited_ >= limit_;
  }
  // Latest end of the next sleep.
  Clock::time_point slice_end() const { return last_ + std::min<Clock::duration>(kSlice, limit_ - waited_); }
  // Whether it has waited about as long as a rank that has just timed out.
  bool is_long() const { return 2 * waited_ >= limit_; }
  std::chrono::duration<double> stood_still() const { return stood_still_; }

 private:
  Clock::duration limit_, waited_{0}, stood_still_{0};
  Clock::time_point last_;
};

}  // namespace kintsugi::base

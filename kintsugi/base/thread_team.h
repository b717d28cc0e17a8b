// A fixed team of threads that run one function together. No other threads compute: libraries are called from within
// the team and use one thread per call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kintsugi::base {

// A range [begin, end) of work.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
};

// Part number `part` of `parts` of [0, total), cut at multiples of `grain` (except for the end).
inline Range share(int64_t total, int64_t part, int64_t parts, int64_t grain = 1) {
  const int64_t grains = (total + grain - 1) / grain;
  const int64_t begin = grains * part / parts * grain, end = grains * (part + 1) / parts * grain;
  return {begin < total ? begin : total, end < total ? end : total};
}

// Decides whether a team pays off. Where other programs occupy some cores, a descheduled thread delays all others, and
// the caller alone may be faster: it then makes all calls itself for a while, with identical results, and tries again.
// The caller alone would take about the processor time that the team's calls take together, so a team is worth it as
// long as its turns end clearly sooner. Reading processor times costs a system call, so only some turns are measured.
class TeamBalance {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  bool alone(Clock::time_point now) const { return now < alone_until_; }
  bool measures(Clock::time_point now) const { return now >= measured_from_; }
  // Records a measured turn, which ended at `now`: `work`, the processor time of all its calls, and its duration.
  void add(Seconds work, Seconds total, Clock::time_point now);

 private:
  // A window outlasts the occasional activity of daemons; trials between periods alone cost below a hundredth of the
  // time.
  static constexpr Seconds kWindow{0.02}, kTrial{0.005}, kUnmeasured{0.06}, kShortest{0.05}, kLongest{0.8};
  // The least gain of a team: below, a thread alone is at most that much slower.
  static constexpr double kGain = 1.05;

  Seconds work_{0}, total_{0}, period_ = kShortest;
  Clock::time_point alone_until_ = {}, measured_from_ = {};
};

// The caller is thread 0. run() allocates nothing. It rethrows the first exception of any thread after all calls have
// ended. Not reentrant. Once the caller has finished its own call, it also makes the calls that their threads have not
// begun, so calls must not wait for each other.
class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);  // UserError if the system cannot start them
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls f(thread) once for each thread of the team and returns when all calls have returned.
  template <typename F>
  void run(const F& f) {
    if (workers_.empty()) return f(0);
    start([](const void* context, int thread) { (*static_cast<const F*>(context))(thread); }, &f);
  }

  // Calls f(Range, thread) over parts of [0, total). Small work stays on the caller.
  template <typename F>
  void for_shares(int64_t total, int64_t grain, const F& f) {
    if (workers_.empty() || total <= grain) return total > 0 ? f(Range{0, total}, 0) : void();
    run([&](int thread) {
      const Range mine = share(total, thread, size(), grain);
      if (mine.size() > 0) f(mine, thread);
    });
  }

 private:
  using Function = void (*)(const void*, int);

  // The last turn in which a thread's call was begun, by whichever thread, and the processor time of the call if the
  // turn is measured.
  struct alignas(64) Begun {
    std::atomic<uint64_t> turn{0};
    double seconds = 0;
  };

  void start(Function function, const void* context);
  void end();
  void work(int thread);
  void call(int thread);
  bool claim(int thread, uint64_t turn);

  std::vector<std::thread> workers_;
  std::unique_ptr<Begun[]> begun_;  // one per thread
  TeamBalance balance_;
  std::atomic<uint64_t> turn_{0};
  std::atomic<int> running_{0};  // unfinished calls of threads other than the caller
  std::atomic<bool> ended_{false};
  bool measured_ = false;  // this turn
  Function function_ = nullptr;
  const void* context_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace kintsugi::base

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

// Decides whether the threads of a team are worth waiting for. Where other programs use some of the cores, a thread
// that is not scheduled delays all others, and the caller alone may be faster: then it makes all calls itself for a
// while, with the same results, and tries again.
class TeamBalance {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  bool alone(Clock::time_point now) const { return now < alone_until_; }
  // A turn took the caller `own` for its own share, and `total` until all `threads` shares were done.
  void add(Seconds own, Seconds total, int threads, Clock::time_point now);

 private:
  // A window outlasts what a daemon takes now and then; trying again costs at most a fortieth of the time.
  static constexpr Seconds kWindow{0.02}, kShortest{0.05}, kLongest{0.8};

  Seconds own_{0}, total_{0}, period_ = kShortest;
  Clock::time_point alone_until_ = {};
};

// The caller is thread 0. Nothing is allocated by run(). The first exception of any thread is thrown by run() after
// all calls have ended. Not reentrant. A call f(thread) that its thread has not begun when the caller is done with its
// own is made by the caller, so calls must not wait for each other.
class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);  // UserError where the system does not start them
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls f(thread) once for every thread of the team, and returns when all calls have.
  template <typename F>
  void run(const F& f) {
    if (workers_.empty()) return f(0);
    start([](const void* context, int thread) { (*static_cast<const F*>(context))(thread); }, &f);
  }

  // f(Range, thread) over parts of [0, total). Small work stays on the caller.
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

  // The last turn in which the call of a thread was begun, by whichever thread.
  struct alignas(64) Begun {
    std::atomic<uint64_t> turn{0};
  };

  void start(Function function, const void* context);
  void end();
  void work(int thread);
  void call(int thread);
  bool claim(int thread, uint64_t turn);

  std::vector<std::thread> workers_;
  std::unique_ptr<Begun[]> begun_;  // one for each thread
  TeamBalance balance_;
  std::atomic<uint64_t> turn_{0};
  std::atomic<int> running_{0};  // calls of threads other than the caller that have not ended
  std::atomic<bool> ended_{false};
  Function function_ = nullptr;
  const void* context_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace kintsugi::base

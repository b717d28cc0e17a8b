#include "kintsugi/base/thread_team.h"

#include <algorithm>
#include <chrono>

#include "kintsugi/base/start_thread.h"

namespace kintsugi::base {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Some tens of microseconds: about the cost of going to sleep and waking up. A thread that waits longer sleeps, so
// that the thread it waits for has a core even if other programs use the cores.
constexpr int kSpins = 2000;

constexpr int kSpinsToYield = 128;  // a core that another thread wants is given up after so many

void relax(int spin) {
  if (spin % kSpinsToYield == kSpinsToYield - 1) return std::this_thread::yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether the threads of a team are worth waiting for. Where other programs use some of the cores, a thread that is not
// given one holds all others up, and the caller alone may be faster: then it calls all shares itself for a while, with
// the same results, and tries again.
class Balance {
 public:
  explicit Balance(const void* team) : team_(team) {}

  const void* team() const { return team_; }
  bool alone(Clock::time_point now) const { return now < alone_until_; }

  // A turn in which the caller worked and then waited for so many others. They would have taken it as long each.
  void add(Seconds worked, Seconds waited, int others, Clock::time_point now) {
    worked_ += worked;
    waited_ += waited;
    if (worked_ + waited_ < kWindow) return;
    if (waited_ > others * worked_) {
      alone_until_ = now + std::chrono::duration_cast<Clock::duration>(period_);
      period_ = std::min(2 * period_, kLongest);
    } else {
      period_ = kShortest;
    }
    worked_ = waited_ = Seconds(0);
  }

 private:
  // A window outlasts what a daemon takes now and then; trying again costs at most a fortieth of the time.
  static constexpr Seconds kWindow{0.02}, kShortest{0.05}, kLongest{0.8};

  const void* team_;
  Seconds worked_{0}, waited_{0}, period_ = kShortest;
  Clock::time_point alone_until_ = {};
};

}  // namespace

ThreadTeam::ThreadTeam(int threads) {
  if (threads > 1) workers_.reserve(static_cast<size_t>(threads) - 1);
  try {
    for (int i = 1; i < threads; ++i) workers_.push_back(start_thread([this, i] { work(i); }));
  } catch (...) {
    end();
    throw;
  }
}

ThreadTeam::~ThreadTeam() {
  end();
}

void ThreadTeam::end() {
  ended_ = true;
  turn_.fetch_add(1);
  turn_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void ThreadTeam::call(int thread) {
  try {
    function_(context_, thread);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadTeam::start(Function function, const void* context) {
  thread_local Balance balance(this);  // a thread calls one team, or a few by turns
  const bool fresh = turn_.load(std::memory_order_relaxed) == 0;  // another may have been at this address
  if (fresh || balance.team() != this) balance = Balance(this);
  function_ = function;
  context_ = context;
  const Clock::time_point begin = Clock::now();
  if (balance.alone(begin)) {
    for (int thread = 0; thread < size(); ++thread) call(thread);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return;
  }
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  turn_.fetch_add(1, std::memory_order_release);
  turn_.notify_all();
  call(0);
  const Clock::time_point worked = Clock::now();
  for (int spin = 0; spin < kSpins && running_.load(std::memory_order_acquire) != 0; ++spin) relax(spin);
  while (const int left = running_.load(std::memory_order_acquire)) running_.wait(left, std::memory_order_acquire);
  const Clock::time_point end = Clock::now();
  balance.add(worked - begin, end - worked, size() - 1, end);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::work(int thread) {
  uint64_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins && turn_.load(std::memory_order_acquire) == seen; ++spin) relax(spin);
    turn_.wait(seen, std::memory_order_acquire);
    seen = turn_.load(std::memory_order_acquire);
    if (ended_) return;
    call(thread);
    if (running_.fetch_sub(1, std::memory_order_release) == 1) running_.notify_one();
  }
}

}  // namespace kintsugi::base

#include "kintsugi/base/thread_team.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "kintsugi/base/start_thread.h"

namespace kintsugi::base {
namespace {

// Some tens of microseconds: about the cost of going to sleep and waking up. A thread that waits longer sleeps, so that
// the thread it waits for gets a core even if other programs use the cores.
constexpr int kSpins = 2000;

constexpr int kSpinsToYield = 128;  // spins before yielding the core

void relax(int spin) {
  if (spin % kSpinsToYield == kSpinsToYield - 1) return std::this_thread::yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Processor time of the calling thread, in seconds.
double thread_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

void TeamBalance::add(Seconds work, Seconds total, Clock::time_point now) {
  work_ += work;
  total_ += total;
  // A trial between two periods alone is shorter: the other programs are most likely still there.
  if (total_ < (period_ > kShortest ? kTrial : kWindow)) return;
  if (kGain * total_ > work_) {
    alone_until_ = now + std::chrono::duration_cast<Clock::duration>(period_);
    period_ = std::min(2 * period_, kLongest);
  } else {
    period_ = kShortest;
    measured_from_ = now + std::chrono::duration_cast<Clock::duration>(kUnmeasured);
  }
  work_ = total_ = Seconds(0);
}

ThreadTeam::ThreadTeam(int threads) {
  if (threads < 2) return;
  begun_ = std::make_unique<Begun[]>(static_cast<size_t>(threads));
  workers_.reserve(static_cast<size_t>(threads) - 1);
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
  const double begin = measured_ ? thread_seconds() : 0;
  try {
    function_(context_, thread);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
  if (measured_) begun_[static_cast<size_t>(thread)].seconds = thread_seconds() - begin;
}

// A turn ends only when all its calls have, so a late thread, in a later turn, finds its call begun.
bool ThreadTeam::claim(int thread, uint64_t turn) {
  std::atomic<uint64_t>& begun = begun_[static_cast<size_t>(thread)].turn;
  uint64_t last = begun.load(std::memory_order_relaxed);
  return last < turn && begun.compare_exchange_strong(last, turn, std::memory_order_acq_rel);
}

void ThreadTeam::start(Function function, const void* context) {
  function_ = function;
  context_ = context;
  const TeamBalance::Clock::time_point begin = TeamBalance::Clock::now();
  measured_ = false;
  if (balance_.alone(begin)) {
    for (int thread = 0; thread < size(); ++thread) call(thread);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return;
  }
  measured_ = balance_.measures(begin);
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  const uint64_t turn = turn_.fetch_add(1, std::memory_order_release) + 1;
  turn_.notify_all();
  call(0);
  for (int thread = size() - 1; thread > 0 && running_.load(std::memory_order_acquire) != 0; --thread) {
    if (!claim(thread, turn)) continue;
    call(thread);
    running_.fetch_sub(1, std::memory_order_relaxed);
  }
  for (int spin = 0; spin < kSpins && running_.load(std::memory_order_acquire) != 0; ++spin) relax(spin);
  while (const int left = running_.load(std::memory_order_acquire)) running_.wait(left, std::memory_order_acquire);
  if (measured_) {
    TeamBalance::Seconds work{0};
    for (int thread = 0; thread < size(); ++thread)
      work += TeamBalance::Seconds(begun_[static_cast<size_t>(thread)].seconds);
    const TeamBalance::Clock::time_point end = TeamBalance::Clock::now();
    balance_.add(work, end - begin, end);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::work(int thread) {
  uint64_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins && turn_.load(std::memory_order_acquire) == seen; ++spin) relax(spin);
    turn_.wait(seen, std::memory_order_acquire);
    seen = turn_.load(std::memory_order_acquire);
    if (ended_) return;
    if (!claim(thread, seen)) continue;
    call(thread);
    if (running_.fetch_sub(1, std::memory_order_release) == 1) running_.notify_one();
  }
}

}  // namespace kintsugi::base

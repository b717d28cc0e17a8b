#include "kintsugi/base/thread_team.h"

#include "kintsugi/base/start_thread.h"

namespace kintsugi::base {
namespace {

// Some tens of microseconds: about the cost of going to sleep and waking up. A thread that waits longer sleeps, so
// that the thread it waits for has a core even if other programs use the cores.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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
  function_ = function;
  context_ = context;
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  turn_.fetch_add(1, std::memory_order_release);
  turn_.notify_all();
  call(0);
  for (int spin = 0; spin < kSpins && running_.load(std::memory_order_acquire) != 0; ++spin) relax();
  while (const int left = running_.load(std::memory_order_acquire)) running_.wait(left, std::memory_order_acquire);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::work(int thread) {
  uint64_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins && turn_.load(std::memory_order_acquire) == seen; ++spin) relax();
    turn_.wait(seen, std::memory_order_acquire);
    seen = turn_.load(std::memory_order_acquire);
    if (ended_) return;
    call(thread);
    if (running_.fetch_sub(1, std::memory_order_release) == 1) running_.notify_one();
  }
}

}  // namespace kintsugi::base

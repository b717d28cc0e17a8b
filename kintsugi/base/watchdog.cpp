#include "kintsugi/base/watchdog.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "kintsugi/base/error.h"
#include "kintsugi/base/patience.h"
#include "kintsugi/base/start_thread.h"

namespace kintsugi::base {
Watchdog::Watchdog(std::string module, int rank, std::string what, std::string why, std::chrono::milliseconds limit)
    : module_(std::move(module)), rank_(rank), what_(std::move(what)), why_(std::move(why)), limit_(limit) {
  try {
    thread_ = start_thread([this] { watch(); });
  } catch (const UserError&) {  // no limit then
  }
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  uint64_t seen = 1;
  for (Patience patience(limit_); !over_; changed_.wait_until(lock, patience.slice_end())) {
    const uint64_t turns = turns_;
    if (turns != seen || turns % 2 == 0) patience = Patience(limit_);
    seen = turns;
    if (patience.is_over()) end_process();
  }
}

// Ends the process by a signal, even if this rank leaves reporting to others: every launcher then ends the other
// processes too.
void Watchdog::end_process() const {
  fmt::print(stderr, "error: [{}] rank {}: {} did not end within {:g} s{}\n", module_, rank_, what_,
             std::chrono::duration<double>(limit_).count(), why_);
  std::fflush(nullptr);
  std::signal(SIGTERM, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, SIGTERM);
  ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  std::raise(SIGTERM);
  std::_Exit(1);
}

}  // namespace kintsugi::base

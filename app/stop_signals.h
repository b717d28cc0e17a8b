// Handles Ctrl-C, SIGTERM, SIGUSR1 and others, for verbs that finish the current step before they end.
#pragma once

#include <signal.h>

#include <atomic>
#include <future>
#include <thread>

namespace kintsugi::app {

// While this object exists, the first SIGINT, SIGTERM or SIGUSR1 increments `count`; a second SIGINT or SIGTERM ends
// the process immediately, and a second SIGUSR1, which schedulers send before a time limit, is ignored. Its thread
// receives the signals, which are blocked in the creating thread and in threads started later: oneDNN's kernels keep
// data addresses in the stack pointer register, where a handler's frame would be written.
class StopSignals {
 public:
  // Which signals: `of_terminal` adds SIGHUP, unless it is ignored, and SIGQUIT, for verbs that restore the terminal.
  enum class Which { stop, of_terminal };
  explicit StopSignals(Which which = Which::stop);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Resets the count: the next signal is the first again.
  static void rearm();

  static std::atomic<int> count;
  static std::atomic<bool> at_once;  // there is nothing to finish yet: the first signal ends the process

 private:
  Which which_;
  std::promise<void> ended_;
  std::thread taker_;
  sigset_t before_;  // what the thread that made it blocked
};

}  // namespace kintsugi::app

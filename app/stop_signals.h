// Ctrl-C and SIGTERM, for verbs that finish the current step before they end.
#pragma once

#include <signal.h>

#include <atomic>
#include <future>
#include <thread>

namespace kintsugi::app {

// While this object exists, the first SIGINT or SIGTERM increments `count`; a second one ends the process at once. Its
// thread takes them, and no thread that is started after it, nor the one that made it: oneDNN's kernels keep addresses
// of data in the stack's register, where the frame of a handler would be written.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static std::atomic<int> count;
  static std::atomic<bool> at_once;  // there is nothing to finish yet: the first signal ends the process

 private:
  std::promise<void> ended_;
  std::thread taker_;
  sigset_t before_;  // what the thread that made it blocked
};

}  // namespace kintsugi::app

// Ctrl-C and SIGTERM, for verbs that finish the current step before they end.
#pragma once

#include <atomic>

namespace kintsugi::app {

// While this object exists, the first SIGINT or SIGTERM increments `count`; a second one ends the process at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static std::atomic<int> count;
};

}  // namespace kintsugi::app

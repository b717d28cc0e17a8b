// Ctrl-C and SIGTERM, for verbs that finish what they are at.
#pragma once

#include <atomic>

namespace kintsugi::app {

// While it lives, the first SIGINT or SIGTERM raises `count`; a second one ends the process at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static std::atomic<int> count;
};

}  // namespace kintsugi::app

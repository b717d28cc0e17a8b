#include "app/stop_signals.h"

#include <csignal>

namespace kintsugi::app {

std::atomic<int> StopSignals::count{0};

namespace {

void stop(int) {
  StopSignals::count.fetch_add(1);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  count = 0;
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace kintsugi::app

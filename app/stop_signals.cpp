#include "app/stop_signals.h"

#include <array>
#include <csignal>

#include "kintsugi/base/start_thread.h"

namespace kintsugi::app {

std::atomic<int> StopSignals::count{0};
std::atomic<bool> StopSignals::at_once{false};

namespace {

void stop(int signal) {
  StopSignals::count.fetch_add(1);
  if (signal == SIGUSR1) {  // a launcher may pass it on more than once
    if (!StopSignals::at_once) return;
    std::signal(SIGUSR1, SIG_DFL);
  }
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (StopSignals::at_once) std::raise(signal);
}

}  // namespace

void StopSignals::rearm() {
  count = 0;
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
  std::signal(SIGUSR1, stop);
}

namespace {

constexpr std::array kOfTerminal = {SIGHUP, SIGQUIT};

}  // namespace

StopSignals::StopSignals(Which which) : which_(which) {
  at_once = false;
  rearm();
  if (which_ == Which::of_terminal)
    for (const int signal : kOfTerminal)
      if (std::signal(signal, stop) == SIG_IGN) std::signal(signal, SIG_IGN);
  taker_ = base::start_thread([end = ended_.get_future()] { end.wait(); });
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);
  if (which_ == Which::of_terminal)
    for (const int signal : kOfTerminal) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

StopSignals::~StopSignals() {
  ended_.set_value();
  taker_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGUSR1, SIG_DFL);
  if (which_ == Which::of_terminal)
    for (const int signal : kOfTerminal)
      if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
}

}  // namespace kintsugi::app

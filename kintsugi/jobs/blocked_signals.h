// Receives signals through a descriptor while children run; RAII descriptors.
#pragma once

#include <signal.h>
#include <unistd.h>

namespace kintsugi::jobs {

// Owns a file descriptor; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  void take(int number) {
    close();
    number_ = number;
  }

 private:
  int number_;
};

// Blocks SIGUSR1, SIGTERM, SIGINT and SIGCHLD, so that signalfd receives them, for the object's lifetime. A child
// restores the mask `before()` between fork and exec.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGUSR1, SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& set() const { return set_; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t set_, before_;
};

}  // namespace kintsugi::jobs

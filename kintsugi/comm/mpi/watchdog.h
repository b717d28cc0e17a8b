// Ends this process where MPI itself waits for longer than the time limit: as it starts, as it makes a communicator and
// as it ends, MPI waits for all ranks, and cannot be told to give up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace kintsugi::comm {

class Watchdog {
 public:
  // `what` follows "[comm] rank 0: " and is followed by " did not end within 3 s" and `why`.
  Watchdog(std::string what, std::string why, std::chrono::milliseconds limit);
  ~Watchdog();  // it ended in time
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();
  [[noreturn]] void end_process() const;

  const std::string what_, why_;
  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::comm

// Several concurrent commands, such as the runs of a sweep.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kintsugi/jobs/blocked_signals.h"

namespace kintsugi::jobs {

// Starts commands with /bin/sh, each in its own process group, so that Ctrl-C reaches only this process. Children
// receive SIGTERM if this process dies. At most one pool exists at a time.
class Pool {
 public:
  Pool();
  ~Pool();  // kills running commands
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Appends output and errors to `log`. Throws UserError if the log cannot be opened or the process cannot be started.
  void start(int64_t id, const std::string& command, const std::filesystem::path& log);

  // Blocks until a command ends or this process receives SIGUSR1, SIGTERM or SIGINT.
  struct Event {
    int signal = 0;   // received by this process; 0: a command ended
    int64_t id = -1;  // of the command that ended
    int code = 0;     // its exit code; 128 plus the signal that ended it
  };
  Event wait();

  void send(int signal);  // to the process group of every running command
  size_t running() const { return children_.size(); }

 private:
  BlockedSignals blocked_;
  Descriptor signals_;
  std::map<pid_t, int64_t> children_;
};

// Returns the lines of a log's last 64 KiB that report errors, for failure_of().
std::vector<std::string> error_lines_of(const std::filesystem::path& log);

}  // namespace kintsugi::jobs

// The command, run in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "tests/paths.h"

namespace kintsugi::tests {

namespace fs = std::filesystem;

struct Ended {
  int code = -1;   // -1: by a signal
  int signal = 0;  // 0: by itself
  std::string out, err;
  std::string progress;  // lines of stderr that are left out of `err`: of the time of day, and of the device
};

// A folder that is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }
  fs::path operator/(const fs::path& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// `kintsugi ARGUMENTS` in a folder; the same shell first runs `before` ("ulimit -f 100"), and `launcher` starts the
// command ("mpirun -n 2").
class Process {
 public:
  Process(const fs::path& folder, const std::string& arguments, const std::string& before = ":",
          const std::string& launcher = "");
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) { ::kill(pid_, signal); }
  bool runs();
  // What it has written to stderr.
  std::string told() const;
  // Waits until `f` is true or the process ends, at most a minute.
  bool wait_for(const std::function<bool()>& f);
  Ended wait();

 private:
  fs::path folder_;
  std::string name_;
  pid_t pid_ = 0;
};

Ended run_kintsugi(const fs::path& folder, const std::string& arguments, const std::string& before = ":",
                   const std::string& launcher = "");

}  // namespace kintsugi::tests

// The command itself, run in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "kintsugi/base/file.h"
#include "tests/paths.h"

namespace kintsugi::tests {

namespace fs = std::filesystem;

struct Ended {
  int code = -1;   // -1: by a signal
  int signal = 0;  // 0: by itself
  std::string out, err;
};

// A folder that is removed with all its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "kintsugi_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }
  fs::path operator/(const fs::path& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// `kintsugi ARGUMENTS` in a folder; `before` is run by the same shell first ("ulimit -f 100"), and `launcher` starts
// the command ("mpirun -n 2").
class Process {
 public:
  Process(const fs::path& folder, const std::string& arguments, const std::string& before = ":",
          const std::string& launcher = "")
      : folder_(folder) {
    static int number = 0;
    name_ = "process_" + std::to_string(++number);
    const std::string command = "cd '" + folder.string() + "' && " + before + " && exec " + launcher + " " +
                                kintsugi_command() + " " + arguments + " > " + name_ + ".out 2> " + name_ +
                                ".err < /dev/null";
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) { ::kill(pid_, signal); }
  bool runs() {
    siginfo_t info = {};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  // Until `f` holds, the process ends, or a minute is over.
  bool wait_for(const std::function<bool()>& f) {
    for (int i = 0; i < 6000; ++i) {
      if (f()) return true;
      if (!runs()) return f();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  Ended wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    Ended ended;
    if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    ended.out = base::read_file(folder_ / (name_ + ".out"));
    ended.err = base::read_file(folder_ / (name_ + ".err"));
    return ended;
  }

 private:
  fs::path folder_;
  std::string name_;
  pid_t pid_ = 0;
};

inline Ended run_kintsugi(const fs::path& folder, const std::string& arguments, const std::string& before = ":",
                          const std::string& launcher = "") {
  return Process(folder, arguments, before, launcher).wait();
}

}  // namespace kintsugi::tests

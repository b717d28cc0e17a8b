#include "tests/process.h"

#include <chrono>
#include <sstream>
#include <thread>

#include "kintsugi/base/file.h"

namespace kintsugi::tests {

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "kintsugi_XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Process::Process(const fs::path& folder, const std::string& arguments, const std::string& before,
                 const std::string& launcher)
    : folder_(folder) {
  static int number = 0;
  name_ = "process_" + std::to_string(++number);
  const std::string command = "cd '" + folder.string() + "' && " + before + " && exec " + launcher + " " +
                              kintsugi_command() + " " + arguments + " > " + name_ + ".out 2> " + name_ +
                              ".err < /dev/null";
  pid_ = ::fork();
  if (pid_ == 0) {
    ::signal(SIGINT, SIG_DFL);  // a shell may have started the test without it
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Process::runs() {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

std::string Process::told() const {
  const fs::path file = folder_ / (name_ + ".err");
  return fs::exists(file) ? base::read_file(file) : "";
}

bool Process::wait_for(const std::function<bool()>& f) {
  for (int i = 0; i < 6000; ++i) {
    if (f()) return true;
    if (!runs()) return f();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

Ended Process::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  Ended ended;
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  ended.out = base::read_file(folder_ / (name_ + ".out"));
  std::istringstream lines(base::read_file(folder_ / (name_ + ".err")));
  for (std::string line; std::getline(lines, line);) {
    const bool timed = line.size() > 8 && line[2] == ':' && line[5] == ':' && line[8] == ' ';
    (timed || line.starts_with("device: ") ? ended.progress : ended.err) += line + (lines.eof() ? "" : "\n");
  }
  return ended;
}

Ended run_kintsugi(const fs::path& folder, const std::string& arguments, const std::string& before,
                   const std::string& launcher) {
  return Process(folder, arguments, before, launcher).wait();
}

}  // namespace kintsugi::tests

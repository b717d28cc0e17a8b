#include "kintsugi/jobs/pool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/jobs/supervise.h"

namespace kintsugi::jobs {
namespace {

[[noreturn]] void fail_to(std::string_view what) {
  throw base::UserError("sweep", "cannot {}: {}", what, std::strerror(errno));
}

}  // namespace

Pool::Pool() {
  signals_.take(::signalfd(-1, &blocked_.set(), SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals_.number() < 0) fail_to("receive signals");
}

Pool::~Pool() {
  send(SIGKILL);
  for (const auto& [pid, id] : children_) ::waitpid(pid, nullptr, 0);
}

void Pool::start(int64_t id, const std::string& command, const std::filesystem::path& log) {
  const Descriptor output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (output.number() < 0) fail_to("open " + log.string());
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) fail_to("start a process");
  if (pid > 0) {
    ::setpgid(pid, pid);  // in the parent too: a signal may be sent before the child has done it
    children_[pid] = id;
    return;
  }
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::pthread_sigmask(SIG_SETMASK, &blocked_.before(), nullptr);
  ::dup2(output.number(), STDOUT_FILENO);
  ::dup2(output.number(), STDERR_FILENO);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  ::_exit(127);
}

Pool::Event Pool::wait() {
  for (;;) {
    int status = 0;
    // Not waitpid(-1): this process may have other children.
    for (const auto& [pid, id] : children_) {
      if (::waitpid(pid, &status, WNOHANG) != pid) continue;
      const Event event = {0, id, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)};
      ::kill(-pid, SIGKILL);  // whatever the command left running
      children_.erase(pid);
      return event;
    }
    pollfd watched = {signals_.number(), POLLIN, 0};
    ::poll(&watched, 1, 1000);
    signalfd_siginfo info = {};
    while (::read(signals_.number(), &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD) return {static_cast<int>(info.ssi_signo), -1, 0};
  }
}

void Pool::send(int signal) {
  for (const auto& [pid, id] : children_) ::kill(-pid, signal);
}

std::vector<std::string> error_lines_of(const std::filesystem::path& log) {
  constexpr std::streamoff kMost = 1 << 16;
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  std::vector<std::string> lines;
  if (!file) return lines;
  file.seekg(std::max<std::streamoff>(0, file.tellg() - kMost));
  for (std::string line; std::getline(file, line);)
    if (reports_error(line)) lines.push_back(line.substr(0, 500));
  return lines;
}

}  // namespace kintsugi::jobs

#include "kintsugi/jobs/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "kintsugi/base/error.h"
#include "kintsugi/jobs/blocked_signals.h"

namespace kintsugi::jobs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kToEnd = std::chrono::seconds(3);  // after SIGTERM

[[noreturn]] void fail(std::string_view what) {
  throw base::UserError("launch", "{}: {}", what, std::strerror(errno));
}

// Splits chunks into lines.
class Lines {
 public:
  Lines(std::vector<std::string>& kept, const Watch& watch) : kept_(kept), watch_(watch) {}

  void add(std::string_view piece) {
    rest_ += piece;
    size_t begin = 0;
    for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
      keep(rest_.substr(begin, end - begin));
      begin = end + 1;
    }
    rest_.erase(0, begin);
    constexpr size_t kLongest = 1 << 16;
    if (rest_.size() > kLongest) rest_.clear();
  }
  void end() {
    if (!rest_.empty()) keep(rest_);
    rest_.clear();
  }
  const std::string& finding() const { return finding_; }  // the first of Watch::judge

 private:
  void keep(std::string line) {
    constexpr size_t kMost = 200, kLongest = 500;
    if (!reports_error(line)) return;
    if (line.size() > kLongest) line.resize(kLongest);
    if (watch_.judge && finding_.empty()) finding_ = watch_.judge(line);
    kept_.push_back(std::move(line));
    if (kept_.size() > kMost) kept_.erase(kept_.begin());
  }

  std::vector<std::string>& kept_;
  const Watch& watch_;
  std::string rest_, finding_;
};

void pass_on(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;  // nobody reads it: the run continues
    text.remove_prefix(static_cast<size_t>(n));
  }
}

pid_t start(const std::string& command, const Descriptor& errors, const BlockedSignals& blocked) {
  const pid_t pid = ::fork();
  if (pid < 0) fail("cannot start a process");
  if (pid > 0) return pid;
  ::pthread_sigmask(SIG_SETMASK, &blocked.before(), nullptr);
  ::dup2(errors.number(), STDERR_FILENO);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  ::_exit(127);
}

}  // namespace

bool reports_error(std::string_view line) {
  for (const std::string_view text : {"error", "Error", "Killed", "oom", "FAIL", "failure", "aborted", "No space"})
    if (line.find(text) != line.npos) return true;
  return false;
}

std::string in_words(const Ended& ended) {
  return ended.code > 128 ? fmt::format("signal {}", ended.code - 128) : fmt::format("code {}", ended.code);
}

std::string missing_program(std::string_view command) {
  const std::string name(command.substr(0, command.find(' ')));
  if (name.find_first_of("/=\"'$") != std::string::npos) return "";
  const char* const path = std::getenv("PATH");
  const std::string folders = path ? path : "";
  for (size_t at = 0; at < folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::path(folders.substr(at, end - at)) / name, error)) return "";
    at = end + 1;
  }
  return name;
}

Ended supervise(const std::string& command, double stop_after, const Watch& watch) {
  const auto began = Clock::now();
  const BlockedSignals blocked;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe");
  Descriptor errors(ends[0]), theirs(ends[1]);
  const Descriptor signals(::signalfd(-1, &blocked.set(), SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals.number() < 0) fail("cannot receive signals");
  const pid_t child = start(command, theirs, blocked);
  theirs.close();

  Ended ended;
  Lines lines(ended.lines, watch);
  int stops = 0, status = 0;
  bool runs = true;
  const auto tell = [&](bool firmly) {
    ::kill(child, firmly && stops > 0 ? SIGTERM : SIGUSR1);
    ++stops;
    ended.told = true;
  };
  // At most once per second, as signals and output wake the loop more often.
  Clock::time_point looked = began, deadline = {};
  const auto look = [&]() -> std::string {
    if (!watch.look || Clock::now() - looked < std::chrono::seconds(1)) return "";
    looked = Clock::now();
    return watch.look();
  };
  // After the command ends, do not wait for what others still write to the pipe.
  while (runs || errors.number() >= 0) {
    std::array<pollfd, 2> watched = {pollfd{signals.number(), POLLIN, 0}, pollfd{errors.number(), POLLIN, 0}};
    int wait = runs ? watch.look || !ended.why.empty() ? 1'000 : 60'000 : 100;
    if (runs && stop_after > 0 && stops == 0) {
      const double left = stop_after - std::chrono::duration<double>(Clock::now() - began).count();
      if (left <= 0) tell(false);
      wait = std::min(wait, std::max(1, static_cast<int>(1e3 * std::min(left, 60.0))));
    }
    const int ready = ::poll(watched.data(), watched.size(), wait);
    if (!runs && ready == 0) break;
    signalfd_siginfo info = {};
    while (::read(signals.number(), &info, sizeof info) == sizeof info)
      if (runs && info.ssi_signo != SIGCHLD) tell(info.ssi_signo != SIGUSR1);
    if ((watched[1].revents & (POLLIN | POLLHUP)) != 0) {
      std::array<char, 4096> buffer{};
      const ssize_t n = ::read(errors.number(), buffer.data(), buffer.size());
      if (n > 0) {
        const std::string_view text(buffer.data(), static_cast<size_t>(n));
        pass_on(text);
        lines.add(text);
      } else if (n == 0) {
        errors.close();
      }
    }
    if (runs && ended.why.empty()) {
      ended.why = lines.finding().empty() ? look() : lines.finding();
      if (!ended.why.empty()) {
        ::kill(child, SIGTERM);
        deadline = Clock::now() + kToEnd;
      }
    } else if (runs && Clock::now() > deadline) {
      ::kill(child, SIGKILL);
    }
    if (runs && ::waitpid(child, &status, WNOHANG) == child) runs = false;
  }
  lines.end();
  ended.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ended;
}

}  // namespace kintsugi::jobs

#include "kintsugi/train/reward_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

extern char** environ;

namespace kintsugi::train {
namespace {

constexpr size_t kLongestLine = 4096;

}  // namespace

RewardProgram::RewardProgram(std::vector<std::string> command, double timeout_seconds)
    : command_(std::move(command)), timeout_seconds_(timeout_seconds) {
  int ends[2];  // a socket, since a write to one whose reader has ended need not raise a signal
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw base::UserError("reward", "cannot start grpo.program: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (std::string& argument : command_) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const int failed = ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  socket_ = ends[0];
  if (failed != 0) {
    ::close(std::exchange(socket_, -1));
    throw base::UserError("reward", "grpo.program cannot start {}: {}", base::in_quotes(command_[0]),
                          std::strerror(failed));
  }
}

RewardProgram::~RewardProgram() {
  if (socket_ >= 0) ::close(socket_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string RewardProgram::end() const {
  int status = 0;
  if (pid_ < 0 || ::waitpid(pid_, &status, 0) != pid_) return "ended";
  pid_ = -1;
  return WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                             : fmt::format("ended with code {}", WEXITSTATUS(status));
}

std::string RewardProgram::read_line() {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::min(timeout_seconds_, 1e6)));
  for (;;) {
    if (const size_t end = read_.find('\n'); end != read_.npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    if (read_.size() > kLongestLine)
      throw base::UserError("reward", "grpo.program {}: a line of its output is longer than {} bytes",
                            base::in_quotes(command_[0]), kLongestLine);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waits = {.fd = socket_, .events = POLLIN, .revents = 0};
    const int ready = left > 0 ? ::poll(&waits, 1, static_cast<int>(std::min<int64_t>(left, 1'000'000))) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && Clock::now() < until) continue;
    if (ready <= 0)
      throw base::UserError("reward",
                            "grpo.program {} printed no reward within {} s (grpo.timeout_seconds); does it write each "
                            "line at once?",
                            base::in_quotes(command_[0]), timeout_seconds_);
    char buffer[4096];
    const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw base::UserError("reward", "grpo.program {} {}", base::in_quotes(command_[0]), end());
    read_.append(buffer, static_cast<size_t>(got));
  }
}

double RewardProgram::ask(std::string_view line) {
  std::string all(line);
  all += '\n';
  for (size_t sent = 0; sent < all.size();) {
    const ssize_t wrote = ::send(socket_, all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) throw base::UserError("reward", "grpo.program {} {}", base::in_quotes(command_[0]), end());
    sent += static_cast<size_t>(wrote);
  }
  const std::string printed = read_line();
  const size_t first = std::min(printed.find_first_not_of(" \t\r"), printed.size()),
               last = printed.find_last_not_of(" \t\r");
  const char* const begin = printed.data() + first;
  const char* const end = last == printed.npos ? begin : printed.data() + last + 1;
  double reward = 0;
  const auto [stopped, error] = std::from_chars(begin, end, reward);
  if (begin == end || error != std::errc() || stopped != end || !std::isfinite(reward))
    throw base::UserError("reward", "grpo.program {} printed {} instead of a number", base::in_quotes(command_[0]),
                          base::in_quotes(base::one_line(printed, 60)));
  return reward;
}

}  // namespace kintsugi::train

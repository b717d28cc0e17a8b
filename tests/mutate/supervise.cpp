#include "tests/mutate/supervise.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace kintsugi::tests {
namespace {

constexpr double kMostSeconds = 10;  // of processor time, for a seed
// Excludes pauses of the supervising process, so that time in which both are stopped does not count.
constexpr int kMostPauses = 120'000;
constexpr std::chrono::milliseconds kPause{1};
constexpr int kBroken = 3;  // exit code where it is not the library that failed
constexpr rlim_t kMostMemory = rlim_t{4} << 30;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

// Shared with the judging process.
struct Board {
  std::atomic<uint64_t> done;   // seeds
  std::atomic<double> since;    // processor time when the present one began
  std::atomic<bool> judging;    // the judge is made
  std::atomic<uint32_t> found;  // findings that are not reported yet: 0 or 1
  Counts counts;
  char what[4096];
};

// 0 if there is no such process.
double seconds_of(clockid_t clock) {
  timespec time = {};
  if (::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void say(Board& board, std::string_view what) {
  const size_t size = std::min(what.size(), sizeof board.what - 1);
  std::memcpy(board.what, what.data(), size);
  board.what[size] = '\0';
}

[[noreturn]] void judge_all(Board& board, uint64_t first, uint64_t count, const std::function<Judge()>& start) {
  ::setpgid(0, 0);
  if (kLimitsMemory) {
    const rlimit limit = {kMostMemory, kMostMemory};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  try {
    const Judge judge = start();
    while (board.done < count) {
      board.since = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
      board.judging = true;
      const Verdict verdict = judge(first + board.done);
      board.counts.by_command += verdict.by_command;
      if (verdict.outcome == Outcome::accepted) ++board.counts.accepted;
      if (verdict.outcome == Outcome::refused) ++board.counts.refused;
      if (verdict.outcome == Outcome::finding) {
        say(board, verdict.what);
        board.found = 1;
        while (board.found != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ++board.done;
    }
  } catch (const std::exception& error) {
    say(board, error.what());
    ::_exit(kBroken);
  }
  ::_exit(0);
}

}  // namespace

Counts supervise(uint64_t first, uint64_t count, const std::function<Judge()>& start,
                 const std::function<void(uint64_t seed, std::string_view what)>& report) {
  void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no shared memory");
  auto& board = *new (shared) Board();
  const auto finding = [&](std::string_view what) {
    ++board.counts.findings;
    report(first + board.done, what);
  };
  while (board.done < count) {
    board.judging = false;
    const pid_t child = ::fork();
    if (child == 0) judge_all(board, first, count, start);
    clockid_t clock = {};
    ::clock_getcpuclockid(child, &clock);
    int status = 0, pauses = 0;
    uint64_t present = board.done;
    const char* hangs = nullptr;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(kPause);
      pauses = board.done == present ? pauses + 1 : 0;
      present = board.done;
      if (board.found != 0) {
        finding(board.what);
        board.found = 0;
      }
      if (hangs) continue;
      if (board.judging && seconds_of(clock) - board.since > kMostSeconds)
        hangs = "takes more than 10 seconds of processor time";
      else if (pauses > kMostPauses)
        hangs = "takes more than 2 minutes";
      else
        continue;
      ::kill(-child, SIGKILL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    if (!board.judging || (WIFEXITED(status) && WEXITSTATUS(status) == kBroken)) {
      finding(fmt::format("mutations cannot be made: {}", board.what));
      break;
    }
    finding(hangs ? std::string(hangs)
            : WIFSIGNALED(status)
                ? fmt::format("ends by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                : fmt::format("ends with code {}", WEXITSTATUS(status)));
    ++board.done;
  }
  const Counts counts = board.counts;
  ::munmap(shared, sizeof(Board));
  return counts;
}

}  // namespace kintsugi::tests

#include "kintsugi/jobs/supervise.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

namespace kintsugi::jobs::supervise_test {
namespace {

TEST(Supervise, TellsHowTheCommandEnded) {
  EXPECT_EQ(supervise("exit 0", 0).code, 0);
  const Ended failed = supervise("echo 'a note' >&2; echo 'error: [x] y' >&2; exit 3", 0);
  EXPECT_EQ(failed.code, 3);
  EXPECT_EQ(in_words(failed), "code 3");
  EXPECT_EQ(failed.lines, std::vector<std::string>{"error: [x] y"});
  EXPECT_FALSE(failed.told);
  const Ended killed = supervise("kill -9 $$", 0);
  EXPECT_EQ(in_words(killed), "signal 9");
}

TEST(Supervise, TellsTheCommandToEndAfterATime) {
  const Ended ended = supervise("trap 'echo an error in time >&2; exit 7' USR1; while :; do sleep 0.02; done", 0.3);
  EXPECT_EQ(ended.code, 7);
  EXPECT_TRUE(ended.told);
  EXPECT_EQ(ended.lines, std::vector<std::string>{"an error in time"});
}

TEST(Supervise, PassesSignalsOn) {
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) {
    // Sent to the process: the supervising thread handles it.
    std::thread sender([&, self = ::getpid()] {
      sigset_t all;
      sigfillset(&all);
      ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(self, signal);
    });
    const Ended ended = supervise("trap 'exit 7' USR1; while :; do sleep 0.02; done", 20);
    sender.join();
    EXPECT_EQ(ended.code, 7) << signal;
    EXPECT_TRUE(ended.told);
  }
}

TEST(Supervise, NamesAProgramThatIsMissing) {
  EXPECT_EQ(missing_program("no_such_launcher -n 4"), "no_such_launcher");
  EXPECT_EQ(missing_program("env x"), "");
  EXPECT_EQ(missing_program(""), "");
  EXPECT_EQ(missing_program("A=1 x"), "");
}

TEST(Supervise, EndsTheCommandForAFinding) {
  const Ended ended = supervise("echo 'error: Node failure on n3' >&2; exec sleep 60", 0,
                                {.judge = [](std::string_view line) { return "found: " + std::string(line); }});
  EXPECT_EQ(ended.why, "found: error: Node failure on n3");
  EXPECT_EQ(in_words(ended), "signal 15");
  EXPECT_FALSE(ended.told);
  int looks = 0;
  const Ended looked =
      supervise("exec sleep 60", 0, {.look = [&] { return ++looks == 2 ? std::string("quiet") : std::string(); }});
  EXPECT_EQ(looked.why, "quiet");
}

// A rank may leave a child that keeps the pipe open.
TEST(Supervise, DoesNotWaitForWhatTheCommandLeavesBehind) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(supervise("sleep 30 & exit 0", 0).code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

}  // namespace
}  // namespace kintsugi::jobs::supervise_test

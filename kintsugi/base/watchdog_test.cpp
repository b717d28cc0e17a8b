#include "kintsugi/base/watchdog.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "kintsugi/base/patience.h"

namespace kintsugi::base {
namespace {

// Time in which the process is stopped does not count as waiting.
TEST(Patience, WaitsOnlyWhileItRuns) {
  Patience patience(std::chrono::milliseconds(800));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // it should be asked more often
  EXPECT_FALSE(patience.is_over());
  EXPECT_GT(patience.stood_still().count(), 0.9);
  const auto start = Patience::Clock::now();
  while (!patience.is_over()) std::this_thread::sleep_until(patience.slice_end());
  EXPECT_LT(Patience::Clock::now() - start, std::chrono::seconds(10));
  EXPECT_TRUE(patience.is_long());
}

// Longer than the limit in total, but never contiguously.
TEST(Watchdog, LetsEndWhatIsInTime) {
  Watchdog watchdog("base", 0, "nothing", "", std::chrono::milliseconds(1500));
  for (int turn = 0; turn < 3; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    watchdog.rest();
    watchdog.start();
  }
  watchdog.rest();
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  watchdog.start();
}

TEST(Watchdog, EndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto limit = std::chrono::milliseconds(200);
  const testing::KilledBySignal killed(SIGTERM);
  const char* const said = "error: \\[base\\] rank 3: a long sleep did not end within 0.2 s; is it night\\?";
  EXPECT_EXIT(
      {
        const Watchdog watchdog("base", 3, "a long sleep", "; is it night?", limit);
        std::this_thread::sleep_for(std::chrono::seconds(30));
      },
      killed, said);
  EXPECT_EXIT(
      {
        Watchdog watchdog("base", 3, "a long sleep", "; is it night?", limit);
        watchdog.rest();
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        watchdog.start();
        std::this_thread::sleep_for(std::chrono::seconds(30));
      },
      killed, said);
}

}  // namespace
}  // namespace kintsugi::base
